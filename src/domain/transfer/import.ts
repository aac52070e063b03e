import { CollabError, invalidField } from '../../model/errors.ts';
import { isDeeperThan } from '../../lib/json-depth.ts';
import { type Environment, SLUG_PATTERN } from '../../model/environments/environment.ts';
import type { Context } from '../context.ts';
import { jsonOrUndefined, MAX_JSON_DEPTH } from '../input/json.ts';
import { isRecord, validate } from '../input/validate.ts';
import { recountUsage } from '../quotas/usage-count.ts';
import { ENVIRONMENTS, SLUGS } from '../records/partitions.ts';
import { EnvironmentImport } from './environment-import.ts';
import { EXPORT_FORMAT, type ExportLine, lineInput, type LineType } from './export-format.ts';
import { checkLine } from './import-checks.ts';

/**
 * Imports an export line by line (docs/export-format.md). Each environment becomes visible in one commit, after its
 * last line; until then no client can reach it, and what an interrupted import leaves behind is removed by the next
 * import of that environment or by `sweepUnfinishedWork`. Call `add` for each line in order, then `finish`; after a
 * rejection call `abandon`.
 */
export class Import {
  readonly #ctx: Context;
  readonly #skipExisting: boolean;
  /** The environments imported so far. */
  readonly done: Environment[] = [];
  /** The slugs of the environments that existed before and were skipped. */
  readonly skipped: string[] = [];
  #lines = 0;
  #hasHeader = false;
  #skipping = false;
  #current: EnvironmentImport | null = null;

  /** @param skipExisting whether to skip environments that exist already instead of refusing them */
  constructor(ctx: Context, { skipExisting }: { skipExisting: boolean }) {
    this.#ctx = ctx;
    this.#skipExisting = skipExisting;
  }

  /**
   * Imports the next line. Throws `invalid_request` for a malformed or misplaced line, `slug_taken`, `id_taken`, and
   * `unsupported_media` for a file whose content contradicts its MIME type. An error about an earlier line is an
   * `ImportError`.
   */
  async add(text: string): Promise<void> {
    this.#lines++;
    const parsed = parse(text);
    const type = String(parsed['type']);
    if (!this.#hasHeader) return this.#readHeader(type, parsed);
    if (this.#skipping && type !== 'environment') return;
    const input = lineInput(type);
    if (input === undefined || type === 'export')
      throw invalid(`a line of the type ${JSON.stringify(type.slice(0, 60))} does not belong here`);
    const line = validate(input, parsed) as ExportLine<Exclude<LineType, 'export'>>;
    if (line.type === 'environment') return this.#open(line);
    const current = this.#current;
    if (current === null) throw invalid(`a line of the type ${type} must follow one of the type environment`);
    checkLine(line, current.environment);
    if (line.type !== 'end') return current.add(line, { number: this.#lines, length: text.length });
    await current.finish(line.lines);
    this.#current = null;
    this.done.push(current.environment);
    await recountUsage(this.#ctx, current.environment.id);
  }

  /** Ends the import. Throws `invalid_request` if the last environment is incomplete. */
  finish(): void {
    if (!this.#hasHeader) throw invalid('the file is empty');
    if (this.#current !== null)
      throw invalid(`the file ends in the middle of the environment ${this.#current.environment.slug}`);
  }

  /** Removes the records and files of an incomplete environment. */
  async abandon(): Promise<void> {
    await this.#current?.abandon();
    this.#current = null;
  }

  #readHeader(type: string, parsed: Record<string, unknown>): void {
    if (type !== 'export' || typeof parsed['format'] !== 'number')
      throw invalid('this is not a Collab export: the first line must be {"type":"export","format":1}');
    if (parsed['format'] > EXPORT_FORMAT)
      throw invalid(
        `the export has the format ${parsed['format']} of a newer Collab; this version reads format ${EXPORT_FORMAT}`,
      );
    this.#hasHeader = true;
  }

  async #open(line: ExportLine<'environment'>): Promise<void> {
    const environment: Environment = line.data;
    if (this.#current !== null)
      throw invalid(`the environment ${this.#current.environment.slug} has no line of the type end`);
    const { id, slug } = environment;
    if (!SLUG_PATTERN.test(slug))
      throw invalidField('data.slug', 'must be 1 to 63 lower-case letters, digits and inner hyphens', slug);
    checkLine(line, environment);
    this.#skipping = (await this.#ctx.store.get(ENVIRONMENTS, id)) !== undefined;
    if (this.#skipping) {
      if (!this.#skipExisting) throw new CollabError('id_taken', `The environment ${slug} (${id}) already exists`);
      this.skipped.push(slug);
      return;
    }
    const existing = await this.#ctx.store.get(SLUGS, slug);
    if (existing !== undefined)
      throw new CollabError('slug_taken', `Another environment (${existing}) has the slug ${slug}`);
    this.#current = await EnvironmentImport.begin(this.#ctx, environment);
  }
}

function parse(text: string): Record<string, unknown> {
  if (isDeeperThan(text, MAX_JSON_DEPTH))
    throw invalid(`it must not nest arrays and objects more than ${MAX_JSON_DEPTH} levels deep`);
  const value = jsonOrUndefined(text);
  if (isRecord(value)) return value;
  throw invalid(value === undefined ? 'it is not valid JSON' : 'it must be a JSON object');
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}
