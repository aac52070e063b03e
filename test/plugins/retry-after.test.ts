import t from 'tap';
import { pluginHttp } from '../../src/plugins/services/plugin-http.ts';
import { startReceiver } from '../helpers/receiver.ts';

const NOW = Date.UTC(2026, 0, 5, 12);

t.test('Retry-After is read as seconds or as a date, and anything else as none', async (t) => {
  const receiver = await startReceiver(t);
  const http = pluginHttp(true, () => NOW);
  const waits: Record<string, number | null> = {
    '0': 0,
    '120': 120_000,
    '1.5': 1_500,
    '0.3000': 300,
    'Mon, 05 Jan 2026 12:00:30 GMT': 30_000,
    'Monday, 05-Jan-26 12:00:30 GMT': 30_000,
    'Mon, 05 Jan 2026 11:59:00 GMT': 0,
    '-1': null,
    '1e3': null,
    '5 seconds': null,
    '2026': 2_026_000,
    Mon: null,
    soon: null,
  };
  for (const [header, ms] of Object.entries(waits)) {
    receiver.answer = { status: 429, headers: { 'retry-after': header } };
    t.equal((await http.request(receiver.url)).retryAfterMs, ms, header);
  }
  receiver.answer = 429;
  t.equal((await http.request(receiver.url)).retryAfterMs, null, 'without the header');
});
