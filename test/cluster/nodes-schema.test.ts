import t from 'tap';
import { collab } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { nodeFolder, startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

t.test(
  'nodes start on a newer schema that says it is compatible, and neither start nor serve on one that is not',
  { skip: skipWithout(...POSTGRES) },
  async (t) => {
    const postgres = await startPostgres(t);
    const engines = { store: { url: postgres.url } };
    const nodes = await startNodes(t, engines, { count: 1 });
    const ask = async (method: string, path: string, body: object): Promise<number> => {
      const answer = await fetch(`${nodes.all[0]?.url}/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${nodes.keys.secretKey}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (answer.status === 400) throw new Error(await answer.text());
      return answer.status;
    };
    const create = (): Promise<number> => ask('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'hello' });
    await ask('PUT', '/users/ann', { name: 'Ann' });
    const version = (name: string): void =>
      void postgres.sql(`update collab.meta set value = '99' where name = '${name}'`);

    version('schema');
    await nodes.all[0]?.kill();
    await nodes.restart(0);
    t.equal(await create(), 201, 'a node that goes back works on the newer schema');

    version('compatible');
    postgres.sql(`update collab.meta set value = 'ffffffffffffffff' where name = 'epoch'`);
    const { code, stderr } = await collab(['start', '--dir', nodeFolder(t, engines), '--port', '0']);
    t.equal(code, 2);
    t.equal(stderr.trim().split('\n').length, 1, stderr);
    t.match(
      stderr,
      /store\.url: PostgreSQL at .* has schema 99 of a newer version of Collab.*upgrade Collab on this node/,
    );
    // The worker of the running node ends, so there may be nobody who answers.
    await until(async () => (await create().catch(() => 503)) === 503);
  },
);
