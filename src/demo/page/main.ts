import { Board } from './board.ts';
import { Connection, type Status } from './connection.ts';
import { byId, element, submitByKey } from './dom.ts';
import type { Actions, Users } from './page.ts';
import { Pins, type Spot } from './pins.ts';
import type { ListedThread, ServerEvent, Session } from './protocol.ts';
import { ThreadCard } from './thread-card.ts';

const ROOM = 'demo';
const RELOAD_DELAY_MS = 2_000;

const list = byId('threads', HTMLOListElement);
const composer = byId('composer', HTMLFormElement);
const draft = byId('new-thread', HTMLTextAreaElement);
const post = composer.querySelector<HTMLButtonElement>('[type=submit]') ?? element('button');
const unpin = byId('unpin', HTMLButtonElement);
const problem = byId('problem', HTMLElement);
const announcer = byId('announcer', HTMLElement);

const board = new Board(ROOM);
const cards = new Map<string, ThreadCard>();
const names = new Map<string, string>();
let me = localStorage.getItem('collab-demo-user') ?? 'ann';
let spot: Spot | null = null;
/** Events that arrived while a list is being loaded; null when none is. */
let buffered: ServerEvent[] | null = null;

const users: Users = { currentUserId: () => me, nameOf: (userId) => names.get(userId) ?? userId };
const actions: Actions = { perform, redraw };
const pins = new Pins(byId('page', HTMLElement), (threadId) => cards.get(threadId)?.reveal(), pinAt);
let connection = connect();

composer.onsubmit = async (event) => {
  event.preventDefault();
  const data = { roomId: ROOM, body: draft.value, ...(spot === null ? {} : { position: spot }) };
  if (!(await perform(post, 'thread.create', data))) return;
  composer.reset();
  pinAt(null);
};
submitByKey(draft);
unpin.onclick = () => pinAt(null);

function connect(): Connection {
  return new Connection(openSession, { onStatus: showStatus, onReset: () => void load(), onEvent: receive });
}

async function openSession(): Promise<Session> {
  const session = await getJson<Session>(`/demo/session?user=${encodeURIComponent(me)}`);
  for (const { userId, name } of session.users) names.set(userId, name);
  showUsers(session.users);
  return session;
}

async function load(): Promise<void> {
  const meanwhile: ServerEvent[] = [];
  buffered = meanwhile;
  try {
    // Joining creates the room if it does not exist.
    await connection.request('room.join', { roomId: ROOM });
    const { threads } = (await connection.request('room.get', { roomId: ROOM, includeComments: true })) as { threads: ListedThread[] };
    // The connection was lost and resumed meanwhile, which started another load.
    if (buffered !== meanwhile) return;
    board.load(threads);
    for (const event of meanwhile) board.apply(event);
    buffered = null;
    redraw();
  } catch {
    // If the connection was renewed meanwhile, that started its own load.
    window.setTimeout(() => buffered === meanwhile && connection.restart(), RELOAD_DELAY_MS);
  }
}

function receive(event: ServerEvent): void {
  if (event.type === 'user.updated') {
    const { userId, name } = event.data as { userId: string; name: string | null };
    if (name !== null) names.set(userId, name);
  }
  if (buffered !== null) buffered.push(event);
  else {
    if (board.apply(event)) announce(event);
    redraw();
  }
}

function redraw(): void {
  const hadFocus = list.contains(document.activeElement);
  const threads = board.threads;
  const numbers = pins.update(threads, users);
  const removed = new Set(cards.keys());
  let before: Element | null = list.firstElementChild;
  for (const entry of threads) {
    const { id } = entry.thread;
    removed.delete(id);
    const card = cards.get(id) ?? new ThreadCard(id, users, actions);
    cards.set(id, card);
    card.update(entry, numbers.get(id) ?? null);
    if (card.root === before) before = before.nextElementSibling;
    else list.insertBefore(card.root, before);
  }
  for (const id of removed) {
    cards.get(id)?.root.remove();
    cards.delete(id);
  }
  byId('count', HTMLElement).textContent = `${threads.filter(({ thread }) => !thread.resolved).length} open`;
  byId('empty', HTMLElement).hidden = threads.length > 0;
  if (hadFocus && !list.contains(document.activeElement)) draft.focus({ preventScroll: true });
}

async function perform(button: HTMLButtonElement, type: string, data: object): Promise<boolean> {
  // Not `disabled`: that would take the keyboard focus away from the button.
  if (button.ariaDisabled === 'true') return false;
  button.ariaDisabled = 'true';
  problem.hidden = true;
  try {
    await connection.request(type, data);
    return true;
  } catch (thrown) {
    problem.textContent = thrown instanceof Error ? thrown.message : String(thrown);
    problem.hidden = false;
    return false;
  } finally {
    button.ariaDisabled = null;
  }
}

function pinAt(chosen: Spot | null): void {
  spot = chosen;
  pins.propose(chosen);
  unpin.hidden = chosen === null;
  byId('pinned', HTMLElement).textContent = chosen === null ? '' : 'Pinned to the page.';
  if (chosen !== null) draft.focus();
}

function showStatus(status: Status, detail: string): void {
  const shown = byId('status', HTMLElement);
  shown.dataset['state'] = status;
  shown.textContent = detail;
}

function showUsers(users: Session['users']): void {
  const choices = byId('users', HTMLFieldSetElement);
  if (choices.querySelector('input') !== null) return;
  for (const { userId, name } of users) {
    const radio = element('input', { type: 'radio', name: 'user', value: userId, checked: userId === me, onchange: () => switchUser(userId) });
    choices.append(element('label', {}, radio, name));
  }
}

function switchUser(userId: string): void {
  me = userId;
  localStorage.setItem('collab-demo-user', userId);
  connection.close();
  connection = connect();
  redraw();
}

const activityTexts: Partial<Record<ServerEvent['type'], string>> = {
  'thread.created': 'posted a thread',
  'thread.resolved': 'resolved a thread',
  'thread.reopened': 'reopened a thread',
  'thread.deleted': 'deleted a thread',
  'comment.created': 'replied',
  'comment.updated': 'edited a comment',
  'comment.deleted': 'deleted a comment',
};

/** Announces to a screen reader what other users did. */
function announce({ type, actor }: ServerEvent): void {
  const what = activityTexts[type];
  if (what === undefined || actor.userId === me) return;
  announcer.textContent = `${actor.userId === null ? 'The server' : users.nameOf(actor.userId)} ${what}`;
}

async function getJson<T>(path: string): Promise<T> {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return (await answer.json()) as T;
}
