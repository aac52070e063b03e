import { delayShared } from './helpers/new-shared.ts';

// Runs the suites in which limits, counts and presence matter over a shared memory that answers late, as one over a
// network.
delayShared();

await import('./domain/users.test.ts');
await import('./domain/quotas.test.ts');
await import('./http/rate-limit.test.ts');
await import('./realtime/limits.test.ts');
await import('./realtime/presence.test.ts');
await import('./realtime/rooms.test.ts');
await import('./realtime/session.test.ts');
await import('./realtime/drain.test.ts');
await import('./realtime/erasures.test.ts');
await import('./spec/04-presence.test.ts');
await import('./spec/08-limits.test.ts');
