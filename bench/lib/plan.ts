import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** The cases, in their default order. */
export const caseNames = [
  'create',
  'list',
  'burst',
  'memory',
  'start',
  'upload',
  'serve',
  'thumbnails',
  'mixed',
  'plugins',
  'webhooks',
  'backlog',
  'panel',
  'paint',
  'growth',
  'reconnects',
] as const;

/** The cases of `--cluster`, which need PostgreSQL and Redis. */
export const clusterCaseNames = ['cluster-create', 'cluster-list', 'cluster-event', 'cluster-idle'] as const;
export type CaseName = (typeof caseNames)[number] | (typeof clusterCaseNames)[number];

/** The content that a store is filled with. */
export interface Backlog {
  /** Unread notifications, in inboxes of a thousand. */
  readonly notifications: number;
  /** Webhook deliveries that are due, to an endpoint that has to exist. */
  readonly deliveries: number;
}

/** The measured cases, and how often each runs. */
export interface Plan {
  readonly cases: readonly CaseName[];
  /** Rounds per case; each round measures every target once. */
  readonly rounds: number;
  /** Duration of one run of wrk. */
  readonly seconds: number;
  /** Duration of the warm-up run of a target, which is not counted. */
  readonly warmUpSeconds: number;
  readonly idleSockets: number;
  readonly memoryRounds: number;
  readonly startRounds: number;
  readonly reconnects: number;
  /** Events in the case `growth`. */
  readonly events: number;
  /** The content of the store of the case `backlog`. */
  readonly backlog: Backlog;
  /** Environments in the case `cluster-idle`, and for how long they are watched. */
  readonly idleEnvironments: number;
  readonly idleSeconds: number;
  /** Parent folder of all data; null for the system's temporary folder. */
  readonly data: string | null;
  /** The built command of the Collab to measure. */
  readonly bin: string;
  /** The built command of an earlier Collab, to compare with instead of the peers; null for none. */
  readonly before: string | null;
}

/** The usage text, printed when an argument is invalid. */
export const usage = `npm run bench [-- --quick] [-- --cluster] [-- --only create,list] [-- --data FOLDER] [-- --bin FILE] [-- --before FILE] [-- --rounds N]
  --quick        one short round of each case: checks that everything runs; says little about speed
  --cluster      nodes on PostgreSQL and Redis, in place of one machine: ${clusterCaseNames.join(', ')}
  --only a,b     only these cases: ${caseNames.join(', ')}
  --data FOLDER  where the databases are written (the disk that is measured); default the temporary folder
  --bin FILE     the collab.js that is measured; default dist/bin/collab.js
  --rounds N     rounds per case, 1 to 100; default 5. More rounds make a comparison with --before more exact
  --before FILE  the collab.js of an earlier build, measured alternately with the other one, instead of the peers`;

/** @throws {Error} naming the invalid option */
export function readPlan(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      cluster: { type: 'boolean', default: false },
      only: { type: 'string' },
      data: { type: 'string' },
      bin: { type: 'string' },
      before: { type: 'string' },
      rounds: { type: 'string' },
    },
  });
  const all = values.cluster ? clusterCaseNames : caseNames;
  const cases = values.only === undefined ? all : values.only.split(',').map((text) => caseName(all, text));
  const data = values.data ?? null;
  const bin =
    values.bin === undefined
      ? fileURLToPath(new URL('../../dist/bin/collab.js', import.meta.url))
      : resolve(values.bin);
  const before = values.before === undefined ? null : resolve(values.before);
  const rounds = values.rounds === undefined ? (values.quick ? 2 : 5) : roundCount(values.rounds);
  if (values.quick) {
    return {
      cases,
      rounds,
      seconds: 2,
      warmUpSeconds: 1,
      idleSockets: 1000,
      memoryRounds: 1,
      startRounds: 3,
      reconnects: 50,
      events: 500,
      backlog: { notifications: 20_000, deliveries: 2_000 },
      idleEnvironments: 10,
      idleSeconds: 5,
      data,
      bin,
      before,
    };
  }
  return {
    cases,
    rounds,
    seconds: 4,
    warmUpSeconds: 2,
    idleSockets: 5000,
    memoryRounds: 3,
    startRounds: 7,
    reconnects: 1_000,
    events: 10_000,
    backlog: { notifications: 1_000_000, deliveries: 100_000 },
    idleEnvironments: 100,
    idleSeconds: 60,
    data,
    bin,
    before,
  };
}

function caseName(names: readonly CaseName[], text: string): CaseName {
  const found = names.find((name) => name === text.trim());
  if (found === undefined) throw new Error(`--only must name ${names.join(', ')}, not "${text}"`);
  return found;
}

function roundCount(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100)
    throw new Error(`--rounds must be a whole number from 1 to 100, not "${text}"`);
  return rounds;
}
