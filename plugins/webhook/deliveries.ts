import type { Job, PluginEnvironment, Queue } from '../../src/plugins/api.ts';
import type { Delivery } from './deliver.ts';

const PAGE = 1_000;

/** The delivery of a job. */
export function deliveryOf({ payload }: Job): Delivery {
  return payload as unknown as Delivery;
}

/** All jobs of a state. Those that change while they are read may be missing, or come twice. */
export async function* jobsIn(queue: Queue, environment: PluginEnvironment, state: Job['state']): AsyncGenerator<Job> {
  for await (const page of pagesOf(queue, environment, state)) yield* page;
}

/** As `jobsIn`, by pages of at most 1 000. */
export async function* pagesOf(
  queue: Queue,
  environment: PluginEnvironment,
  state: Job['state'],
): AsyncGenerator<readonly Job[]> {
  for (
    let page = await queue.list(environment, { state, limit: PAGE });
    page.length > 0;
    page = await pageAfter(queue, environment, page)
  )
    yield page;
}

/** Removes the deliveries to an endpoint, waiting and failed ones, page by page. Returns how many there were. */
export async function removeDeliveries(
  queue: Queue,
  environment: PluginEnvironment,
  endpointId: string,
): Promise<number> {
  let count = 0;
  for (const state of ['waiting', 'dead'] as const) {
    for await (const page of pagesOf(queue, environment, state)) {
      const own = page.filter((job) => deliveryOf(job).endpointId === endpointId);
      await Promise.all(own.map(({ id }) => queue.remove(environment, id)));
      count += own.length;
    }
  }
  return count;
}

/** Whether there are deliveries to an endpoint. */
export async function hasDeliveries(
  queue: Queue,
  environment: PluginEnvironment,
  endpointId: string,
): Promise<boolean> {
  for (const state of ['waiting', 'dead'] as const) {
    for await (const job of jobsIn(queue, environment, state))
      if (deliveryOf(job).endpointId === endpointId) return true;
  }
  return false;
}

/**
 * The jobs after a page: after the last one that is still at its place, because a list cannot continue after one that
 * is gone.
 */
async function pageAfter(queue: Queue, environment: PluginEnvironment, page: readonly Job[]): Promise<readonly Job[]> {
  for (const { id, state, dueAt } of page.toReversed()) {
    const isInPlace = async (): Promise<boolean> => {
      const job = await queue.get(environment, id);
      return job?.state === state && job.dueAt === dueAt;
    };
    if (!(await isInPlace())) continue;
    try {
      return await queue.list(environment, { state, after: id, limit: PAGE });
    } catch (error) {
      if (await isInPlace()) throw error;
    }
  }
  const [first] = page;
  return first === undefined ? [] : queue.list(environment, { state: first.state, limit: PAGE });
}
