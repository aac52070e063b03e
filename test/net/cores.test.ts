import t from 'tap';
import { httpContract } from '../conformance/core/http.ts';
import { socketContract } from '../conformance/core/sockets.ts';
import { noNativeCore } from '../helpers/core.ts';

for (const core of ['uws', 'node'] as const) {
  t.test(`the core ${core}`, { skip: core === 'uws' ? noNativeCore : false }, async (t) => {
    await httpContract(t, core);
    await socketContract(t, core);
  });
}
