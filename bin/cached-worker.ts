// The entry point of the built processes that the primary forks: runs worker.ts, bundled as worker-code.cjs, with its
// code cache.
import { fileURLToPath } from 'node:url';
import { WorkerExit } from '../src/cluster/exit.ts';
import { runWithCodeCache } from '../src/lib/process/code-cache.ts';

runWithCodeCache(
  fileURLToPath(new URL('./worker-code.cjs', import.meta.url)),
  process.env['COLLAB_CODE_CACHE'],
  WorkerExit.intended,
);
