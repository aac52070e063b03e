import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import { Connection } from '../../src/adapters/postgres/connection.ts';
import { sqlState } from '../../src/adapters/postgres/faults.ts';
import { parseTarget } from '../../src/adapters/postgres/target.ts';
import { type Cluster, until } from '../helpers/cluster.ts';
import { startCuttingProxy } from '../helpers/engines/cutting-proxy.ts';
import { findProgram, skipWithout } from '../helpers/engines/instance.ts';
import { NodeLoad } from '../helpers/engines/node-load.ts';
import { startNodes } from '../helpers/engines/nodes.ts';
import { type Postgres, POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

const skip = skipWithout(...POSTGRES);

/** A message of PostgreSQL to its client. */
function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(body));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
}

/** Its answer to a notification that does not fit into the queue, and that it is ready for the next statement. */
const QUEUE_FULL = Buffer.concat([
  message('E', 'SERROR\0VERROR\0C54000\0Mtoo many notifications in the NOTIFY queue\0\0'),
  message('Z', 'I'),
]);

/** A session that listens to the channels of Collab, and stays in a transaction that has read the events. */
interface Stuck {
  /** The URL by which nodes reach the database. */
  readonly url: string;
  /** Has notifications refused, because nothing can be removed from their queue. */
  fill(): Promise<void>;
  /** Ends the transaction. */
  end(): Promise<void>;
}

/**
 * From version 17 on the queue can be made as short as 64 pages of 8 KB, and is really full then. Before, it has 8 GB,
 * so that a proxy says that it is.
 */
async function startStuck(t: Test): Promise<Stuck & { readonly postgres: Postgres }> {
  const [version] =
    /\d+(?=[.\d]*\s)/.exec(execFileSync(findProgram('postgres') ?? '', ['--version'], { encoding: 'utf8' })) ?? [];
  const isBounded = Number(version) >= 17;
  const postgres = await startPostgres(t, isBounded ? { settings: { max_notify_queue_pages: '64' } } : {});
  const proxy = await startCuttingProxy(t, postgres.port);
  let isFull = false;
  proxy.onText('notify collab_', () => (isFull ? QUEUE_FULL : 'never'));
  const url = isBounded ? postgres.url : postgres.url.replace(`:${postgres.port}/`, `:${proxy.port}/`);
  let listener: Connection | undefined;
  const open = (name: string): Promise<Connection> => Connection.open(parseTarget('store.url', postgres.url), name);
  t.teardown(() => listener?.close());
  return {
    postgres,
    url,
    fill: async () => {
      listener = await open('stuck');
      await listener.run('listen collab_growth; listen collab_topics');
      await listener.run('begin isolation level repeatable read');
      await listener.run('select pg_current_xact_id(), count(*) from collab.events');
      isFull = !isBounded;
      if (!isBounded) return;
      const filling = await open('filling');
      try {
        for (let n = 0; ; n++) await filling.run(`select pg_notify('others', '${n}' || repeat('x', 7900))`);
      } catch (error) {
        t.equal(sqlState(error), '54000');
      } finally {
        filling.close();
      }
    },
    end: async () => {
      await listener?.run('commit');
      isFull = false;
    },
  };
}

async function readiness({ url }: Cluster): Promise<{ status: number; messages: string | undefined }> {
  const answer = await fetch(`${url}/readyz`);
  const { checks } = (await answer.json()) as { checks: { messages?: string } };
  return { status: answer.status, messages: checks.messages };
}

t.test(
  'a listener that is stuck in a transaction costs messages between nodes, and nothing else',
  { skip },
  async (t) => {
    const stuck = await startStuck(t);
    const nodes = await startNodes(t, { store: { url: stuck.url } }, { count: 2 });
    const load = await NodeLoad.start(t, nodes);
    await load.goesOn();
    const isReady = async (node: Cluster, messages: string): Promise<boolean> => {
      const found = await readiness(node);
      return found.status === 200 && found.messages === messages;
    };
    for (const node of nodes.all) await until(() => isReady(node, 'ok'));

    await stuck.fill();
    for (const node of nodes.all) {
      // It stays in the load balancer.
      await until(() => isReady(node, 'failed'));
      const { msg } = await node.logged(({ msg }) => /cannot tell the others/.test(String(msg)));
      t.match(msg, /too many notifications/);
      t.match(msg, /pg_stat_activity/, 'and says what to do');
    }
    await load.goesOn(60);
    for (let n = 0; n < 3; n++) {
      const begun = performance.now();
      const { seq } = await load.ask<{ seq: number }>('GET', '/events?limit=1');
      await Promise.all(load.clients.map((client) => client.reach(seq)));
      t.comment(`all clients had the last event ${Math.round(performance.now() - begun)} ms later`);
    }
    const second = nodes.all[1] as Cluster;
    await second.kill();
    await nodes.restart(1);
    const restarted = nodes.all[1] as Cluster;
    // A node can start meanwhile.
    await until(() => isReady(restarted, 'failed'));
    await load.goesOn();

    await stuck.end();
    for (const node of nodes.all) {
      await until(async () => (await readiness(node)).messages === 'ok');
      await node.logged(({ msg }) => msg === 'messages between nodes arrive');
      const said = node.log().filter(({ msg }) => /cannot tell the others/.test(String(msg)));
      t.ok(said.length <= 2, `each of its workers said it once: ${said.length} lines`);
    }
    await load.goesOn();
    await load.verify(t);
  },
);
