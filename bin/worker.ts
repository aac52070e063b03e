// The entry of the processes that the primary forks. Their role is in the environment.
import { startWorker } from '../src/app.ts';

void startWorker(process.env['COLLAB_ROLE'] ?? '');
