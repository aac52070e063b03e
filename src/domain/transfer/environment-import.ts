import { CollabError, invalidField } from '../../model/errors.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { KeyPointer } from '../../model/environments/key.ts';
import type { Transaction } from '../../ports/store.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { ImportMarker } from '../environments/unfinished-work.ts';
import { newStreamId } from '../events/streams.ts';
import { ENVIRONMENTS, KEY_HASHES, keysOf, SLUGS } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { markOrderComplete } from '../users/user-order.ts';
import type { ContentLine, LineOf } from './export-format.ts';
import { FileImport } from './file-import.ts';
import { RecordImport } from './record-import.ts';

/** Where a line is from. */
export interface SourceLine {
  /** Its number in the export, from 1. */
  readonly number: number;
  /** Its length in characters. */
  readonly length: number;
}

/** The import of one environment, which `finish` makes visible. */
export class EnvironmentImport {
  readonly environment: Environment;
  readonly #ctx: Context;
  readonly #marker: ImportMarker;
  readonly #records: RecordImport;
  readonly #files: FileImport;
  /** API keys, which are written together with the environment: they give access to it. */
  readonly #keys: LineOf<'key'>['data'][] = [];
  /** Lines read so far, with that of the environment. */
  #lines = 1;

  private constructor(ctx: Context, environment: Environment, marker: ImportMarker) {
    this.environment = environment;
    this.#ctx = ctx;
    this.#marker = marker;
    this.#records = new RecordImport(ctx, environment.id, marker);
    this.#files = new FileImport(ctx, environment.id);
  }

  /**
   * Begins the import of an environment that does not exist. It gets a new event stream, which starts at position 0.
   */
  static async begin(ctx: Context, environment: Environment): Promise<EnvironmentImport> {
    const marker = await ImportMarker.begin(ctx, environment);
    return new EnvironmentImport(ctx, { ...environment, streamId: newStreamId() }, marker);
  }

  /**
   * Imports a checked line. Throws `invalid_request` for a misplaced one, and as `FileImport.close` for the file before
   * it.
   */
  async add(line: ContentLine, { number, length }: SourceLine): Promise<void> {
    if (line.type !== 'chunk') await this.#files.close();
    this.#lines++;
    if (line.type === 'chunk') await this.#files.write(line.data);
    else if (line.type === 'key') this.#addKey(line.data);
    else {
      this.#records.add(line);
      if (line.type === 'file') await this.#files.open(line.data, number);
    }
    await this.#marker.refresh();
    await this.#records.commitIfDue(length);
  }

  /**
   * Makes the environment visible, with everything that gives access to it. Throws `invalid_request` unless it has as
   * many `lines` as its last line says, `id_taken`, `slug_taken`, `internal` if files were removed during the import,
   * and as `FileImport.close` for the last file.
   */
  async finish(lines: number): Promise<void> {
    const { id, slug } = this.environment;
    await this.#files.close();
    if (lines !== this.#lines)
      throw invalid(`the environment ${slug} has ${this.#lines} lines before its end, not ${lines}`);
    await this.#records.finish();
    await this.#files.requireAll();
    await this.#ctx.store.transact(async (tx) => {
      if ((await tx.get(ENVIRONMENTS, id)) !== undefined)
        throw new CollabError('id_taken', `The environment ${slug} was created by another import in the meantime`);
      if ((await tx.get(SLUGS, slug)) !== undefined)
        throw new CollabError('slug_taken', `Another environment has the slug ${slug} now`);
      await this.#marker.complete(tx);
      putRecord(tx, ENVIRONMENTS, id, this.environment);
      tx.put(SLUGS, slug, id);
      markOrderComplete(tx, id);
      for (const key of this.#keys) await putKey(tx, key);
      const target = { kind: 'environment', id } as const;
      for (const chain of [null, id])
        await appendAuditRecord(this.#ctx, tx, chain, {
          action: 'environment.import',
          target,
          details: { slug, lines, keys: this.#keys.length },
        });
    });
  }

  /** Removes the records and files imported so far. */
  async abandon(): Promise<void> {
    await this.#files.discard();
    await this.#marker.rollBack();
  }

  #addKey(data: LineOf<'key'>['data']): void {
    if (data.environmentId !== this.environment.id)
      throw invalidField('data.environmentId', `must be ${this.environment.id}`, data.environmentId);
    if (this.#keys.some(({ id }) => id === data.id))
      throw invalid(`the environment has another line of the type key for ${data.id}`);
    this.#keys.push(data);
  }
}

async function putKey(tx: Transaction, key: LineOf<'key'>['data']): Promise<void> {
  const { id, environmentId, hash, expiresAt, revokedAt } = key;
  putRecord(tx, keysOf(environmentId), id, key);
  if (revokedAt !== null) return;
  // A holder of that key would reach this environment instead of the one that the key was made for.
  if ((await tx.get(KEY_HASHES, hash)) !== undefined)
    throw new CollabError('id_taken', `The key ${id} is a key of another environment`);
  putRecord(tx, KEY_HASHES, hash, { environmentId, keyId: id, expiresAt } satisfies KeyPointer);
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}
