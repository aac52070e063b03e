import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { startTcpProxy } from '../helpers/engines/tcp-proxy.ts';
import { comment, live, openDemo, pin, reconnected } from '../helpers/widget-page.ts';

t.test(
  'users on two nodes see each other, and one whose node is killed goes on on the other, without a reload',
  { skip: skipReason || skipWithout(...POSTGRES) },
  async (t) => {
    const postgres = await startPostgres(t);
    const config = { demo: true, shutdown: { closeSpreadSeconds: 0 } };
    const nodes = await startNodes(t, { store: { url: postgres.url } }, { count: 2, config });
    const [first, second] = nodes.all as [(typeof nodes.all)[0], (typeof nodes.all)[0]];
    const proxy = await startTcpProxy(t, first.port);
    const browser = await openBrowser(t);
    const viewport = { width: 1100, height: 900 };
    const at = { ...first, url: `http://127.0.0.1:${proxy.port}` };
    const ann = await openDemo(t, await browser.newContext({ viewport }), at, 'ann');
    const bob = await openDemo(t, await browser.newContext({ viewport }), second, 'bob');
    let loads = 0;
    for (const page of [ann, bob]) page.on('load', () => loads++);
    const seeEachOther = async (): Promise<void> => {
      await ann.locator('collab-comments .faces[aria-label*="Bob"]').waitFor();
      await bob.locator('collab-comments .faces[aria-label*="Ann"]').waitFor();
    };
    await seeEachOther();
    await comment(ann, '#revenue', 'Seen from the other node');
    await pin(bob, 'Seen from the other node').waitFor();

    for (const pid of [...first.pids('web'), ...first.pids('background')]) process.kill(pid, 'SIGKILL');
    first.signal('SIGKILL');
    await first.ended;
    proxy.target = second.port;
    proxy.cut();
    await comment(bob, 'h1', 'While Ann was away');
    await reconnected(ann);
    await live(ann);
    await pin(ann, 'While Ann was away').waitFor();
    await comment(ann, '#notes', 'Back on the other node');
    await pin(bob, 'Back on the other node').waitFor();
    await seeEachOther();
    t.equal(loads, 0, 'no page was reloaded');
  },
);
