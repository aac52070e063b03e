import { isatty } from 'node:tty';
import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { readableLine } from './readable-lines.ts';
import { RepeatedErrors } from './repeated-errors.ts';

/** The logger of pino. Modules import it from here, so that only this file names pino. */
export type { Logger } from 'pino';

/** Standard output or standard error, as a file descriptor. */
export type LogOutput = 1 | 2;

/** How a process logs. */
export interface LogOptions {
  /** The lowest level that is logged: a level of pino, or `silent`. */
  readonly level: string;
  /** The name of the process, in every line as `worker`: `primary`, `web-1`. */
  readonly name: string;
  /** Where the lines are written; standard output when absent. */
  readonly output?: LogOutput;
  /** Replaces `output` in tests. */
  readonly destination?: DestinationStream;
}

/**
 * Creates a logger that writes one JSON object per line: level by name, ISO time, pid, `worker`, then the fields given.
 * If `output` is a terminal, it writes lines for people instead, in colour unless NO_COLOR is set. Writes are
 * synchronous, so that the last lines of a dying process are not lost. Secrets are redacted in the finished line,
 * wherever they occur: values under secret names, and everything that looks like a key, a token or a secret in a URL.
 *
 * Of lines with the same message and the same error, ten are written in a minute; the next one after that says how many
 * were left out, in `leftOut`. Lines about requests (`requestId`) are all written.
 *
 * Lines that cannot be written, such as on a full disk, are kept up to 1 MB and written with a later line that can be;
 * further ones are dropped, and a line says how many.
 */
export function createLogger({ level, name, output = 1, destination }: LogOptions): Logger {
  const log = pino(
    {
      level,
      base: { pid: process.pid, worker: name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact, logMethod: limitRepeated(new RepeatedErrors()) },
    },
    destination ??
      destinationOf(output, (dropped) =>
        log.warn({ dropped }, 'lines of the log were dropped, because they could not be written'),
      ),
  );
  return log;
}

/** Leaves out lines that repeat one error too often. */
function limitRepeated(repeated: RepeatedErrors): NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']> {
  return function limited(args, method) {
    const [fields, message] = args as readonly unknown[];
    if (
      typeof fields !== 'object' ||
      fields === null ||
      !('err' in fields) ||
      'requestId' in fields ||
      typeof message !== 'string'
    )
      return method.apply(this, args);
    const admitted = repeated.admit(fields.err, message);
    if (admitted === null) return;
    if (admitted.left === 0) return method.apply(this, args);
    method.call(this, { ...fields, leftOut: admitted.left }, message);
  };
}

/** @param onDropped called with the number of dropped lines when lines can be written again */
function destinationOf(output: LogOutput, onDropped: (lines: number) => void): DestinationStream {
  const stream = pino.destination({ fd: output, sync: true, maxLength: MAX_UNWRITTEN });
  // Without a listener, a failed write would end the process. The stream keeps the lines and tries again with the next
  // one.
  stream.on('error', () => {});
  let dropped = 0;
  stream.on('drop', () => {
    if (dropped++ === 0) {
      stream.once('drain', () => {
        const lines = dropped;
        dropped = 0;
        onDropped(lines);
      });
    }
    // A dropped line alone would not make the stream try again to write what it keeps.
    stream.write('');
  });
  if (!isatty(output)) return stream;
  const colour = (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb';
  return { write: (line) => void stream.write(readableLine(line, colour)) };
}

/** The length of the lines that are kept while they cannot be written, in UTF-16 code units. */
const MAX_UNWRITTEN = 1024 * 1024;

const REDACTED = '[redacted]';

const NAMES =
  '(?:proxy[-_]?)?authorization|x[-_]?service[-_]?key|(?:set[-_]?)?cookie|[a-z_-]{0,40}(?:token|password|passphrase|secret|(?:secret|private)[-_]?key)';
/** Names whose values are always redacted. */
const SECRET_NAME = new RegExp(`^(?:${NAMES})$`, 'i');
/** `name=value` in a query string or form. */
const QUERY_PAIR = new RegExp(`\\b(${NAMES}|sig|signature)=[^&;#\\s"]+`, 'gi');
/** `"name": "value"` in JSON that is part of a text. */
const JSON_PAIR = new RegExp(`"(${NAMES})"\\s*:\\s*(?:"(?:[^"\\\\]|\\\\.)*"|[^\\s"\\[{,}]+)`, 'gi');
/** The value of an Authorization header. */
const BEARER = /\b(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}/gi;
/** Collab's secret keys, admin tokens and webhook secrets. */
const KEY = /(?<![A-Za-z0-9])(sk|adm|whsec)_[A-Za-z0-9_+/=-]+/g;
/** A compact JWS, such as a user token, also inside the subprotocol `collab.token.…`. */
const TOKEN = /eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
/** Whether a line may contain any of these. Most lines do not, and this check is all they cost. */
const SUSPECT =
  /authorization|service[-_]?key|cookie|token|password|passphrase|secret|private[-_]?key|bearer|sig(?:nature)?=|sk_|adm_|whsec_|eyJ/i;

/** Returns the line (one JSON object) without its secrets. */
export function redact(line: string): string {
  return SUSPECT.test(line) ? `${JSON.stringify(clean(JSON.parse(line)))}\n` : line;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [cleanText(name), SECRET_NAME.test(name) ? REDACTED : clean(inner)]),
  );
}

function cleanText(text: string): string {
  return text
    .replace(BEARER, `$1${REDACTED}`)
    .replace(KEY, `$1_${REDACTED}`)
    .replace(TOKEN, REDACTED)
    .replace(QUERY_PAIR, `$1=${REDACTED}`)
    .replace(JSON_PAIR, `"$1":"${REDACTED}"`);
}
