import { isDeepStrictEqual } from 'node:util';
import { copyJson } from '../../lib/copy-json.ts';
import type { Json } from '../../model/json.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, pluginKvOf } from '../records/partitions.ts';
import { parseRecord, readRecord, type RecordEntry, readRecords } from '../records/record.ts';

const KEY = /^[\x21-\x7e]{1,200}$/;
const PREFIX = /^[\x21-\x7e]{0,200}$/;
const MAX_VALUE_LENGTH = 256 * 1024;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** Lists with a higher limit are not cached. */
const MAX_CACHED = 100;

/** Which keys `PluginKv.list` returns. */
export interface KvListOptions {
  /** Only keys that start with this. */
  readonly prefix?: string;
  /** Only keys after this one, exclusive. */
  readonly after?: string;
  /** 1 to 1 000; 100 by default. */
  readonly limit?: number;
}

/**
 * The durable storage of one plugin in one environment. Its methods reject with an `Error` that names the bound for bad
 * keys and values.
 */
export class PluginKv {
  readonly #ctx: Context;
  readonly #environmentId: string;
  readonly #partition: string;

  constructor(ctx: Context, environmentId: string, plugin: string) {
    this.#ctx = ctx;
    this.#environmentId = environmentId;
    this.#partition = pluginKvOf(environmentId, plugin);
  }

  /** The value of a key; undefined if there is none. */
  async get(key: string): Promise<Json | undefined> {
    return readRecord<Json>(this.#ctx.store, this.#partition, checkKey(key));
  }

  /** Stores a value of at most 262 144 characters as JSON. */
  put(key: string, value: Json): Promise<void> {
    const text = render(value);
    return this.#write(key, () => text);
  }

  /** Deletes a key; no effect if there is none. */
  delete(key: string): Promise<void> {
    return this.#write(key, () => undefined);
  }

  /** Stores `value` if the current one equals `expected` (undefined: there is none), and returns whether it did. */
  async replace(key: string, expected: Json | undefined, value: Json): Promise<boolean> {
    const text = render(value);
    let replaced = false;
    await this.#write(key, (stored) => {
      replaced = isDeepStrictEqual(stored === undefined ? undefined : parseRecord<Json>(stored), expected);
      return replaced ? text : stored;
    });
    return replaced;
  }

  /** The keys and their values, in the order of the keys. */
  async list({ prefix = '', after, limit = DEFAULT_LIMIT }: KvListOptions = {}): Promise<
    { key: string; value: Json }[]
  > {
    if (!PREFIX.test(prefix))
      throw new Error('prefix must be at most 200 characters of printable ASCII without spaces');
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
      throw new Error(`limit must be a whole number from 1 to ${MAX_LIMIT}`);
    const read = (): Promise<RecordEntry<Json>[]> =>
      readRecords<Json>(this.#ctx.store, this.#partition, {
        prefix,
        after: after === undefined ? undefined : checkKey(after),
        limit,
      });
    // What a plugin lists for every event, such as its endpoints, is short and changes rarely. Longer lists would fill
    // the cache.
    const isCached = after === undefined && limit <= MAX_CACHED;
    if (!isCached) return read();
    const list = `kv list ${this.#partition} ${limit} ${prefix}`;
    // Each caller may change the values.
    return copyJson(await this.#ctx.store.cached(list, [this.#partition], read));
  }

  /** Whether there is a key with this prefix. Cached until the storage changes. */
  hasPrefix(prefix: string): Promise<boolean> {
    return this.#ctx.store.cached(
      `kv ${this.#partition} ${prefix}`,
      [this.#partition],
      async () => (await this.#ctx.store.range(this.#partition, { prefix, limit: 1 })).length > 0,
    );
  }

  /**
   * Reads the list in the field `field` of every value whose key starts with `prefix`, and returns the items of all
   * these lists. Returns null, which stands for every item, if the field of one value is not a list, or if there are
   * more than 100 values. Cached until the storage changes.
   */
  listedUnder(prefix: string, field: string): Promise<ReadonlySet<string> | null> {
    return this.#ctx.store.cached(`kv listed ${this.#partition} ${field} ${prefix}`, [this.#partition], async () => {
      const entries = await readRecords<Record<string, unknown> | null>(this.#ctx.store, this.#partition, {
        prefix,
        limit: MAX_CACHED + 1,
      });
      const lists = entries.map(({ value }) => value?.[field]);
      return entries.length <= MAX_CACHED && lists.every((list) => Array.isArray(list)) ? new Set(lists.flat()) : null;
    });
  }

  async #write(key: string, change: (stored: string | undefined) => string | undefined): Promise<void> {
    checkKey(key);
    await this.#ctx.store.transact(async (tx) => {
      if ((await tx.get(ENVIRONMENTS, this.#environmentId)) === undefined)
        throw new Error('the environment was deleted');
      const stored = await tx.get(this.#partition, key);
      const text = change(stored);
      if (text === stored) return;
      if (text === undefined) tx.delete(this.#partition, key);
      else tx.put(this.#partition, key, text);
    });
  }
}

function checkKey(key: string): string {
  if (typeof key !== 'string' || !KEY.test(key))
    throw new Error('key must be 1 to 200 characters of printable ASCII without spaces');
  return key;
}

function render(value: Json): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new Error('value must be JSON');
  if (text.length > MAX_VALUE_LENGTH) throw new Error(`value must be at most ${MAX_VALUE_LENGTH} characters as JSON`);
  if (!text.isWellFormed()) throw new Error('value must be well-formed Unicode, without lone surrogates');
  return text;
}
