import { pino, type DestinationStream, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Standard output or standard error, as a file descriptor. */
export type LogOutput = 1 | 2;

export interface LogOptions {
  /** Least weight that is logged, a level of pino or `silent`. */
  readonly level: string;
  /** Who writes, bound to every line as `worker`: `primary`, `web-1`. */
  readonly name: string;
  /** Where the lines go; standard output when absent. */
  readonly output?: LogOutput;
  /** In place of `output`. */
  readonly destination?: DestinationStream;
}

/**
 * A log of one JSON object per line: level by name, ISO time, pid, `worker`, then what is given. Lines are written at
 * once, so that the last words of a process are not lost. No line holds a secret: values under the names of secrets and
 * everything that looks like a key, a token or a secret in a URL are blotted out of the finished line, wherever they stand.
 */
export function createLogger({ level, name, output = 1, destination }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, worker: name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    destination ?? pino.destination({ fd: output, sync: true }),
  );
}

const BLOT = '[redacted]';

const NAMES =
  '(?:proxy[-_]?)?authorization|x[-_]?service[-_]?key|(?:set[-_]?)?cookie|[a-z_-]{0,40}(?:token|password|passphrase|secret|(?:secret|private)[-_]?key)';
/** A name under which nothing is ever shown. */
const SECRET_NAME = new RegExp(`^(?:${NAMES})$`, 'i');
/** A pair in a query or a form. */
const QUERIED = new RegExp(`\\b(${NAMES}|sig|signature)=[^&;#\\s"]+`, 'gi');
/** A pair in JSON, inside a text. */
const QUOTED = new RegExp(`"(${NAMES})"\\s*:\\s*(?:"(?:[^"\\\\]|\\\\.)*"|[^\\s"\\[{,}]+)`, 'gi');
/** The value of an Authorization header. */
const SCHEME = /\b(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}/gi;
/** Our secret keys, admin tokens and webhook secrets, wherever they stand. */
const KEY = /(?<![A-Za-z0-9])(sk|adm|whsec)_[A-Za-z0-9_+/=-]+/g;
/** A compact JWS: the subprotocol that carries one has it after `collab.token.`. */
const TOKEN = /eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
/** Whether a line may hold any of these: most don't, and cost no more than this look. */
const SUSPECT = /authorization|service[-_]?key|cookie|token|password|passphrase|secret|private[-_]?key|bearer|sig(?:nature)?=|sk_|adm_|whsec_|eyJ/i;

/** The line, one JSON object, without its secrets. */
export function redact(line: string): string {
  return SUSPECT.test(line) ? `${JSON.stringify(clean(JSON.parse(line)))}\n` : line;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [cleanText(name), SECRET_NAME.test(name) ? BLOT : clean(inner)]));
}

function cleanText(text: string): string {
  return text.replace(SCHEME, `$1${BLOT}`).replace(KEY, `$1_${BLOT}`).replace(TOKEN, BLOT).replace(QUERIED, `$1=${BLOT}`).replace(QUOTED, `"$1":"${BLOT}"`);
}
