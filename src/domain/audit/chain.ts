import { hash } from 'node:crypto';
import type { AuditHead, AuditRecord } from '../../model/environments/audit.ts';
import { jsonOrUndefined } from '../input/json.ts';
import { isRecord } from '../input/validate.ts';
import { parseRecord } from '../records/record.ts';

/** A chain: that of the environment with this id, or that of the server for null. */
export type AuditChain = string | null;

/**
 * The head of an empty chain. Its hash is the `prev` of the first record, so that no chain can pass for another one.
 */
export function emptyHead(chain: AuditChain): AuditHead {
  return { seq: 0, hash: hash('sha256', `collab-audit ${chain ?? 'server'}`, 'hex') };
}

/** A record before it has a hash. */
export type UnhashedRecord = Omit<AuditRecord, 'hash'>;

/**
 * The SHA-256 of a record, hex. Its canonical form is its JSON without `hash` and white space, with the keys of every
 * object in the order of their UTF-16 units, in UTF-8 (the subset of RFC 8785 that strings, integers, booleans and null
 * need).
 */
export function hashOf(record: UnhashedRecord): string {
  const { seq, at, actor, action, target, details, prev } = record;
  return hash('sha256', canonical({ seq, at, actor, action, target, details, prev }), 'hex');
}

/**
 * The next record of a chain whose stored head is `stored` (undefined for an empty chain), in the form in which it is
 * stored.
 */
export function addToChain(
  chain: AuditChain,
  stored: string | undefined,
  record: Omit<UnhashedRecord, 'seq' | 'prev'>,
): { readonly text: string; readonly head: AuditHead } {
  const { seq, hash: prev } = parseHead(chain, stored);
  return renderRecord({ ...record, seq: seq + 1, prev });
}

/** The stored head of a chain; undefined is that of an empty one. */
export function parseHead(chain: AuditChain, stored: string | undefined): AuditHead {
  return stored === undefined ? emptyHead(chain) : parseRecord<AuditHead>(stored);
}

/** Completes a record and renders it in the form in which it is stored and exported. */
function renderRecord(record: UnhashedRecord): { readonly text: string; readonly head: AuditHead } {
  const digest = hashOf(record);
  return { text: canonical({ ...record, hash: digest }), head: { seq: record.seq, hash: digest } };
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${fields.join(',')}}`;
}

/** Checks the records of a chain in their order. */
export class ChainCheck {
  #head: AuditHead;
  /** Whether the place of the last record is known. After a fault in the JSON it is not. */
  #follows = true;

  constructor(chain: AuditChain) {
    this.#head = emptyHead(chain);
  }

  /** The last record so far. */
  get head(): AuditHead {
    return this.#head;
  }

  /**
   * Checks the next record and returns what is wrong with it; empty if nothing is.
   *
   * @param text the record as it is stored or exported
   */
  add(text: string): string[] {
    const expected = this.#head.seq + 1;
    const record = parse(text);
    if (record === null) {
      this.#follows = false;
      this.#head = { seq: expected, hash: '' };
      return [`record ${expected} is not a record of an audit log`];
    }
    const faults: string[] = [];
    if (record.seq !== expected)
      faults.push(
        record.seq > expected
          ? `record ${missing(expected, record.seq)}`
          : `record ${record.seq} is in the place of record ${expected}`,
      );
    else if (this.#follows && record.prev !== this.#head.hash)
      faults.push(`record ${record.seq} does not follow the record before it: one of them was changed or replaced`);
    if (hashOf(record) !== record.hash || canonical(record) !== text)
      faults.push(`record ${record.seq} was changed: its content does not have its hash`);
    this.#head = { seq: record.seq, hash: record.hash };
    this.#follows = true;
    return faults;
  }

  /** Compares the end of the chain with the head that was stored beside it. Returns what is wrong. */
  end(head: AuditHead): string[] {
    if (this.#head.seq < head.seq)
      return [`record ${missing(this.#head.seq + 1, head.seq + 1)} at the end: the head names ${head.seq} records`];
    if (this.#head.seq > head.seq) return [`the chain has ${this.#head.seq} records, but its head names ${head.seq}`];
    return this.#head.hash === head.hash ? [] : [`the last record, ${head.seq}, does not have the hash of the head`];
  }
}

function missing(first: number, next: number): string {
  return next - first === 1 ? `${first} is missing` : `${first} to ${next - 1} are missing`;
}

function parse(text: string): AuditRecord | null {
  const value = jsonOrUndefined(text);
  return isRecord(value) &&
    Number.isSafeInteger(value['seq']) &&
    typeof value['hash'] === 'string' &&
    typeof value['prev'] === 'string'
    ? (value as unknown as AuditRecord)
    : null;
}
