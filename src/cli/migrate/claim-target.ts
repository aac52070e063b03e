import { ENVIRONMENTS } from '../../domain/records/partitions.ts';
import { moveNotice } from '../../model/move.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { StoreTransfer } from '../../ports/store-transfer.ts';
import { usageFailure } from '../failure.ts';

/**
 * Makes the target that of this move: its state becomes `unfinished`, which no server serves. Returns `done` if this
 * move has ended before.
 *
 * @param requireEmptyFiles rejects unless the files of a new target are empty
 * @throws {Failure} if it has other data, or the source is part of another move; nothing was written then
 */
export async function claimTarget(
  source: StoreTransfer,
  target: StoreTransfer,
  requireEmptyFiles: () => Promise<void>,
): Promise<'new' | 'unfinished' | 'done'> {
  const from = await source.state();
  const to = await target.state();
  if (from !== undefined && (from.kind === 'unfinished' || from.other !== target.label))
    throw usageFailure(`${moveNotice(capitalised(source.label), from)}.`, 'Nothing was written.');
  if (to !== undefined) {
    if (to.kind === 'unfinished' && to.epoch === source.epoch && to.other === source.label) return 'unfinished';
    throw usageFailure(`${moveNotice(capitalised(target.label), to)}.`, 'Nothing was written. Choose an empty target.');
  }
  if (from?.kind === 'moved' && target.epoch === source.epoch) return 'done';
  if ((await target.scan(null)).length > 0 || (await target.streams()).length > 0)
    throw usageFailure(
      `${capitalised(target.label)} has data that is not of this migration, so nothing was written.`,
      'Choose an empty target, or empty it if nobody needs that data.',
    );
  await requireEmptyFiles();
  await target.setState({ kind: 'unfinished', other: source.label, epoch: source.epoch });
  return 'new';
}

/**
 * For a target that an earlier run has claimed: the files that it has must be of environments that this move knows, as
 * those that the source does not have are removed.
 *
 * @throws {Failure} if somebody else has put files there since
 */
export async function requireOwnFiles(source: StoreTransfer, target: StoreTransfer, blobs: Blobs): Promise<void> {
  for (const environmentId of await blobs.environments()) {
    const known = await Promise.all([source, target].map((store) => store.get(ENVIRONMENTS, environmentId)));
    if (known.every((record) => record === undefined))
      throw usageFailure(
        `The place for uploaded files of the target has files of ${environmentId}, which are not of this migration, so nothing was moved.`,
        'Choose another place for them, empty the target, and run the command again. If that environment was deleted since the command ran last, remove its files from the target.',
      );
  }
}

/** @throws {Failure} if there are files */
export async function requireNoFiles(blobs: Blobs): Promise<void> {
  for (const environmentId of await blobs.environments())
    for await (const name of blobs.list(environmentId))
      throw usageFailure(
        `The place for uploaded files of the target has files, such as ${environmentId}/${name}, so nothing was written.`,
        'Choose another bucket, prefix or folder for them.',
      );
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
