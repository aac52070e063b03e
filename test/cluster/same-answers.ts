import type { Test } from 'tap';
import type { Random } from '../fuzz/random.ts';
import type { Tenant } from '../helpers/service.ts';

/** A request with the secret key, in which ids are names that `SameAnswers` has given. */
export interface Step {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly idempotencyKey?: string | undefined;
}

/** A tenant with the names of its ids, both ways. */
interface Side {
  readonly tenant: Tenant;
  readonly names: Map<string, string>;
  readonly ids: Map<string, string>;
}

/** What the server makes by chance: ids, and cursors, which contain them. */
const MADE = /\b[a-z]{2,3}_(?=[0-9a-z]*\d)[0-9a-z_]{16,}|(?<="nextCursor":")[^"]+/g;
const STEP_MS = 1_000;

/** Asks two services the same, each by a worker that chance chooses, and compares the answers but for ids. */
export class SameAnswers {
  readonly #random: Random;
  readonly #sides: readonly Side[];

  constructor(random: Random, tenants: readonly Tenant[]) {
    this.#random = random;
    this.#sides = tenants.map((tenant) => ({ tenant, names: new Map(), ids: new Map() }));
  }

  /** The name of something that exists or has existed; now and then, and while there is none, text that names nothing. */
  known(kind: 'th' | 'cm' | 'cursor'): string {
    const names = [...(this.#sides[0]?.ids.keys() ?? [])].filter((name) => name.startsWith(`@${kind}.`));
    return names.length === 0 || this.#random.chance(0.03) ? 'nothing' : this.#random.pick(names.slice(-10));
  }

  /** Asks both, and asserts that the answers are the same. */
  async ask(t: Test, step: Step): Promise<void> {
    const [one, other] = await Promise.all(this.#sides.map((side) => this.#ask(side, step)));
    t.equal(other, one, `${step.method} ${step.path}`, { body: JSON.stringify(step.body) });
  }

  async #ask({ tenant, names, ids }: Side, { method, path, body, idempotencyKey }: Step): Promise<string> {
    const known = (text: string): string =>
      text.replaceAll(/(?:@|%40)[a-z]+\.\d+/g, (name) => ids.get(name.replace('%40', '@')) ?? name);
    // So that no two requests are of the same time, and each is of the same one in both.
    tenant.service.clock.advance(STEP_MS);
    const answer = await tenant.request(method, known(path), {
      worker: this.#random.below(tenant.service.urls.length),
      headers: idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey },
      ...(body === undefined ? {} : { body: JSON.parse(known(JSON.stringify(body))) as object }),
    });
    const [code, replayed] = [answer.headers.get('X-Error-Code'), answer.headers.get('Idempotent-Replayed')];
    const text = `${answer.status} ${code} ${replayed} ${answer.text}`;
    return text.replace(/"epoch":"[^"]*"/, '').replaceAll(MADE, (id) => {
      const named = names.get(id) ?? `@${/^([a-z]{2,3})_/.exec(id)?.[1] ?? 'cursor'}.${names.size}`;
      names.set(id, named);
      ids.set(named, id);
      return named;
    });
  }
}
