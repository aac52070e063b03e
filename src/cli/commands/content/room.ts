import type { Command } from 'commander';
import { operatorActor } from '../../../domain/access/actor.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { deleteRoom } from '../../../domain/rooms/room-removal.ts';
import { getRoom, listRooms } from '../../../domain/rooms/rooms.ts';
import { parseListQuery } from '../../../domain/lists/list-query.ts';
import type { Room } from '../../../model/room.ts';
import { addCommand, addGroup } from '../../command.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { limitHelp, listItems, moreText } from '../../shared/list-items.ts';
import { withStore } from '../../shared/open-store.ts';
import { keyValues, nextSteps, printResult, table } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';

/** Adds `room list|show|delete`. */
export function register(program: Command): void {
  const room = addGroup(program, 'room', 'Rooms: what the threads of a page are in.');
  const ENV = 'Environment of the room.';

  addCommand(room, 'list', {
    summary: 'List the rooms, newest first.',
    examples: ['collab room list --env default', 'collab room list --env default --prefix docs/ --json'],
  })
    .requiredOption('--env <slug>', 'Environment of the rooms.')
    .option('--prefix <text>', 'Only rooms whose id begins with this.')
    .option('--limit <n>', limitHelp('rooms'), '100')
    .action(list);

  addCommand(room, 'show <id>', { summary: 'Show a room.', examples: ['collab room show demo --env default'] })
    .requiredOption('--env <slug>', ENV)
    .action(show);

  addCommand(room, 'delete <id>', {
    summary: 'Delete a room with its threads, files and shared state.',
    details: 'Asks for the id first. This cannot be undone. The next thread in the room creates it again.',
    examples: ['collab room delete demo --env default', 'collab room delete demo --env default --yes'],
  })
    .requiredOption('--env <slug>', ENV)
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function list(
  { env, prefix, limit }: { env: string; prefix?: string; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const found = await withStore(at, async (ctx) => {
    const actor = operatorActor(await findEnvironment(ctx, env));
    return listItems<Room>('rooms', { prefix }, limit, (query) => listRooms(ctx, actor, query));
  });
  printResult(at.json, found, () =>
    found.items.length === 0
      ? `There are no rooms${prefix === undefined ? '' : ` that begin with "${prefix}"`} in ${env}.`
      : table(
          ['room', 'threads', 'open', 'last activity', 'created'],
          found.items.map((room) => [
            room.roomId,
            String(room.threadCount),
            String(room.openThreadCount),
            room.lastActivityAt,
            room.createdAt,
          ]),
        ) + moreText(found),
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const room = await withStore(at, async (ctx) =>
    roomIn((await getRoom(ctx, operatorActor(await findEnvironment(ctx, env)), id, roomOnly)).text),
  );
  printResult(at.json, room, () =>
    [
      keyValues([
        ['room', room.roomId],
        ['threads', `${room.threadCount}, ${room.openThreadCount} of them open`],
        ['metadata', JSON.stringify(room.metadata)],
        ['created', room.createdAt],
        ['updated', room.updatedAt],
        ['last activity', room.lastActivityAt],
      ]),
      nextSteps(`collab thread list ${shellWord(room.roomId)} --env ${env}`),
    ].join('\n'),
  );
}

async function remove(id: string, { env, yes }: { env: string; yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const room = await withStore(at, async (ctx) => {
    const actor = operatorActor(await findEnvironment(ctx, env));
    const found = roomIn((await getRoom(ctx, actor, id, roomOnly)).text);
    await confirmDestruction({
      warning: `This deletes the room ${id} with its ${found.threadCount} threads. This cannot be undone.`,
      answer: id,
      yes: yes === true,
    });
    await deleteRoom(ctx, actor, id);
    return found;
  });
  printResult(
    at.json,
    { deleted: true, roomId: id, threads: room.threadCount },
    () => `Deleted the room ${id} with its ${room.threadCount} threads.`,
  );
}

/** Options that read a room with as few threads as possible. */
const roomOnly = { includeComments: false, query: parseListQuery(new URLSearchParams({ limit: '1' }), 'threads') };

function roomIn(text: string): Room {
  return (JSON.parse(text) as { room: Room }).room;
}
