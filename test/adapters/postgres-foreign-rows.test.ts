import fc from 'fast-check';
import t, { type Test } from 'tap';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { openPostgresTransfer } from '../../src/adapters/postgres/transfer/transfer.ts';
import type { StoredEvent } from '../../src/ports/store.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';
import { startTestServer } from '../helpers/http.ts';

/** Texts as other programs write them: U+0001 begins what the store has escaped itself. */
const foreign = fc
  .tuple(
    fc.constantFrom('', '\u0001', '\u0001"', '\u0001\u0001', '\u0001{', '\u00015', '\u0001null', '\u0001["a"]', '{"'),
    fc.string({ unit: fc.constantFrom('a', '"', '\\', '\u0001', '{', '}', ' ', 'é', '😀', '\n') }),
  )
  .map(([start, rest]) => start + rest);
/** Numbers of transactions: long ago, and of another cluster that is far ahead. */
const version = fc.constantFrom('0', '1', '999999999999');

const rows = fc.array(fc.record({ text: foreign, version }), { minLength: 1, maxLength: 6 });

/** SQL of a text, whatever characters it has. */
const literal = (text: string): string => `convert_from('\\x${Buffer.from(text).toString('hex')}', 'UTF8')`;

/** What the store must read in place of a text: itself, unless it is one that the store would have written. */
function meaningOf(text: string): string {
  if (!text.startsWith('\u0001')) return text;
  try {
    const value: unknown = JSON.parse(text.slice(1));
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
}

async function readsAll(t: Test, postgres: Postgres): Promise<void> {
  const [store, peer] = await Promise.all([open(t, postgres), open(t, postgres)]);
  const heard: StoredEvent[] = [];
  let run = 0;
  peer.follow((stream, event) => void (stream === `s${run}` && event !== null && heard.push(event)));
  await fc.assert(
    fc.asyncProperty(rows, async (written) => {
      const name = `p${++run}`;
      heard.length = 0;
      const texts = written.map(({ text }) => meaningOf(text));
      postgres.sql(
        [
          ...written.map(
            ({ text, version }, i) =>
              `insert into collab.records values ('${name}', 'k${i}', ${literal(text)}, '${version}')`,
          ),
          `insert into collab.partitions values ('${name}', '${written[0]?.version}')`,
          ...written.map(
            ({ text }, i) =>
              `insert into collab.events (stream, seq, text) values ('s${run}', ${i + 1}, ${literal(text)})`,
          ),
          `insert into collab.streams (stream, last_seq, commit)
            values ('s${run}', ${written.length}, '${written.at(-1)?.version}')`,
        ].join(';'),
      );
      const [range, ours, page, ...single] = await Promise.all([
        store.range(name),
        store.get('mine', 'k'),
        store.events(`s${run}`, 0, 100),
        ...texts.map((_, i) => store.get(name, `k${i}`)),
      ]);
      const bad = [range.map(({ value }) => value), page.map(({ text }) => text), single].find(
        (found) => JSON.stringify(found) !== JSON.stringify(texts),
      );
      if (bad !== undefined) throw new Error(`read ${JSON.stringify(bad)} in place of ${JSON.stringify(texts)}`);
      if (ours !== (run === 1 ? undefined : `${run - 1}`)) throw new Error(`${ours} is not of run ${run - 1}`);
      // One that reads and changes such rows, and one of others in the same group.
      await Promise.all([
        store.transact(async (tx) => {
          for (const [i, text] of texts.entries()) {
            if ((await tx.get(name, `k${i}`)) !== text) throw new Error(`k${i} is another text in a transaction`);
            tx.update(name, `k${i}`, (current) => `${current ?? ''}+`);
          }
          tx.emit(`s${run}`, (seq) => String(seq));
        }),
        store.transact(async (tx) => tx.put('mine', 'k', String(run))),
      ]);
      const changed = (await peer.range(name)).map(({ value }) => value);
      if (JSON.stringify(changed) !== JSON.stringify(texts.map((text) => `${text}+`)))
        throw new Error(`changed to ${JSON.stringify(changed)}`);
      peer.poll();
      await until(() => heard.at(-1)?.seq === written.length + 1);
    }),
    { numRuns: 40 },
  );
  const transfer = await openPostgresTransfer({ url: postgres.url });
  t.teardown(() => transfer.close());
  t.ok((await transfer.scan(null)).length > 0, 'a move reads them too');
}

async function open(t: Test, { url }: Postgres): Promise<PostgresStore> {
  const store = await openPostgresStore({ url, connections: 4, name: 'test' });
  t.teardown(() => store.close());
  return store;
}

/** Requests that do not read a foreign row are answered, and so is everything once it is gone. */
async function answersOthers(t: Test, postgres: Postgres): Promise<void> {
  const { request, environment } = await startTestServer(t, { store: await open(t, postgres) });
  await request('PUT', '/users/ann', { body: { name: 'Ann' } });
  const threads: string[] = [];
  for (const room of ['lobby', 'other']) {
    const answer = await request<{ thread: { id: string } }>('POST', `/rooms/${room}/threads`, {
      body: { userId: 'ann', body: 'Hello' },
    });
    threads.push(answer.json.thread.id);
  }
  const place = `partition = 'e/${environment.id}/r/other' and key = 'room'`;
  const before = postgres.sql(`select value from collab.records where ${place}`);
  const put = (value: string): string =>
    postgres.sql(`update collab.records set value = ${literal(value)}, version = pg_current_xact_id() where ${place};
      update collab.partitions set version = pg_current_xact_id() where partition = 'e/${environment.id}/r/other'`);
  put('\u0001 no JSON');
  const answers = await Promise.all([
    request('GET', '/rooms'),
    request('GET', '/rooms/lobby/threads'),
    request('GET', `/threads/${threads[0]}/comments`),
    request('POST', `/threads/${threads[0]}/comments`, { body: { userId: 'ann', body: 'Hi' } }),
    request('GET', '/users'),
    request('GET', '/events?since=0'),
  ]);
  t.strictSame(
    answers.map(({ status }) => status),
    [500, 200, 200, 201, 200, 200],
  );
  put(before);
  t.equal((await request('GET', '/rooms')).status, 200);
}

t.test('rows of other programs', { skip: skipWithout(...POSTGRES), timeout: 120_000 }, async (t) => {
  const postgres = await startPostgres(t);
  await t.test('are read as they are, and fail nothing that is read or committed with them', (t) =>
    readsAll(t, postgres),
  );
  await t.test('fail only requests that need what they say', (t) => answersOthers(t, postgres));
});
