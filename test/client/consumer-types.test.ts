import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { codeBlocks } from '../helpers/code-blocks.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A page of an application, with everything that it would import. */
const page = `
import { CollabError, CollabSession, type RoomThread } from 'collab/client';
import { useThreads } from 'collab/react';
import { SharedSocket } from 'collab/shared-socket';
import { YjsProvider } from 'collab/yjs';
import type {} from 'collab/widget';
import * as Y from 'yjs';

export const session = new CollabSession({ publishableKey: 'pk_a', token: async ({ reason }) => (reason === 'refused' ? '' : 'a.b.c') });
export const shared = new CollabSession({ publishableKey: 'pk_a', token: () => 'a.b.c', WebSocket: SharedSocket });
export const room = session.room('docs/intro');
room.on('cursor', ({ userId, position }) => console.log(userId.length + position.x));
session.on('event', (event) => { if (event.type === 'comment.created') console.log(event.data.body.length, event.seq + 1); });
export const bodies = (threads: readonly RoomThread[]): string[] => threads.flatMap(({ comments }) => comments.map(({ body }) => body));
export const useBodies = (): string[] => bodies(useThreads(session, 'docs/intro'));
export async function write(): Promise<string> {
  try {
    const { id } = await room.createThread({ body: 'Hello', position: { x: 0.5, y: 0.5 } });
    return id;
  } catch (error) {
    return error instanceof CollabError && error.code === 'rate_limited' ? String(error.retryAfter) : '';
  }
}
const doc = new Y.Doc();
export const provider: YjsProvider<Y.Doc> = new YjsProvider({ Y, doc, session, roomId: 'board' });
// @ts-expect-error A thread has a text.
void room.createThread({});
const widget = document.querySelector('collab-comments');
if (widget !== null) {
  widget.tokenProvider = async () => 'a.b.c';
  widget.session = session;
  widget.strings = { comments: 'Notes' };
  widget.togglePanel();
  widget.addEventListener('collab-error', (event) => console.log(event.detail.code === 'rate_limited', event.detail.message.length));
  widget.addEventListener('collab-ready', ({ detail }) => console.log(detail.threads + 1));
  // @ts-expect-error A thread is not named by a number.
  widget.addEventListener('collab-thread-open', ({ detail }) => console.log(detail.threadId + 1 === 2));
  // @ts-expect-error The provider is a function.
  widget.tokenProvider = 'a.b.c';
}
document.addEventListener('collab-status', ({ detail }) => console.log(detail.status === 'live', detail.reason.length));
`;

/** A page of an application that uses React. */
const component = `
import { useThreads } from 'collab/react';
import type { CollabSession } from 'collab/client';

export function Comments({ session }: { readonly session: CollabSession }) {
  const threads = useThreads(session, 'docs/intro');
  return (
    <main title={String(threads.length)}>
      <collab-comments ref={(element) => { if (element !== null) element.session = session; }} room="docs/intro" theme="dark" cursors className="notes" />
      {/* @ts-expect-error There is no such theme. */}
      <collab-comments theme="blue" />
      <collab-comments session={session} tokenProvider={() => 'a.b.c'} />
    </main>
  );
}
`;

/** A backend, which has no types of browsers. */
const backend = `
import { CollabClient, verifyWebhook } from 'collab/client';

const collab = new CollabClient({ serverUrl: 'https://comments.example.com', secretKey: 'sk_a' });
export async function report(): Promise<string[]> {
  const { id, comments } = await collab.threads.create('docs/intro', { userId: 'ci-bot', body: 'The build failed' });
  const found = comments.map(({ body }) => body);
  for await (const comment of collab.comments.list(id)) found.push(comment.body);
  return found;
}
export const received = async (body: string, headers: Record<string, string>): Promise<string> => (await verifyWebhook({ body, headers, secret: 'whsec_a' })).type;
`;

const projects = [
  {
    name: 'a page, also one of React,',
    files: { 'page.ts': page, 'component.tsx': component },
    options: { module: 'ESNext', moduleResolution: 'Bundler', lib: ['ES2022', 'DOM'], types: [], jsx: 'react-jsx' },
  },
  {
    name: 'a backend, and the example of docs/sdk.md for one,',
    files: { 'backend.ts': backend, 'example.ts': codeBlocks('docs/sdk.md', 'js')[0] ?? '' },
    options: { module: 'NodeNext', moduleResolution: 'NodeNext', lib: ['ES2023'], types: ['node'] },
  },
];

for (const { name, files, options } of projects) {
  t.test(`${name} in strict TypeScript is checked with the emitted types`, async (t) => {
    const dir = consumer(t);
    for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
    t.strictSame(await check(dir, options, Object.keys(files)), { code: 0, said: '' });
  });
}

t.test('the emitted types are right in themselves', async (t) => {
  const dir = consumer(t);
  cpSync(join(root, 'dist/types'), join(dir, 'types'), { recursive: true });
  const declarations = readdirSync(join(dir, 'types'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => join('types', name));
  t.ok(declarations.length > 50, `${declarations.length} declarations`);
  // As sources: declarations are checked only together with those of all packages, of which typebox alone takes 11 s.
  const sources = declarations.map((name) => name.replace(/\.d\.ts$/, '.ts'));
  for (const [at, name] of declarations.entries()) renameSync(join(dir, name), join(dir, sources[at] ?? ''));
  const options = {
    module: 'ESNext',
    moduleResolution: 'Bundler',
    lib: ['ES2022', 'DOM'],
    types: [],
    jsx: 'react-jsx',
  };
  t.strictSame(await check(dir, { ...options, allowImportingTsExtensions: true }, sources), { code: 0, said: '' });
});

/** A folder in which Collab and what its consumers use are installed. */
function consumer(t: Test): string {
  const dir = tempFolder(t);
  mkdirSync(join(dir, 'node_modules', '@types'), { recursive: true });
  symlinkSync(root, join(dir, 'node_modules', 'collab'));
  for (const linked of ['yjs', 'react', 'typebox', '@types/react', '@types/node'])
    symlinkSync(join(root, 'node_modules', linked), join(dir, 'node_modules', linked));
  writeFileSync(join(dir, 'package.json'), '{ "type": "module" }');
  return dir;
}

/** Runs the compiler over some files of a folder. */
async function check(dir: string, options: object, files: readonly string[]): Promise<{ code: unknown; said: string }> {
  const compilerOptions = {
    ...options,
    strict: true,
    noEmit: true,
    target: 'ES2022',
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
  };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  // The loaders that the test runner gives to its child processes cannot load the compiler.
  const compiler = spawn(
    'sh',
    [
      '-c',
      'NODE_OPTIONS= exec "$0" "$@"',
      process.execPath,
      join(root, 'node_modules/typescript/bin/tsc'),
      '--project',
      dir,
      // Several checkers would check the same types.
      '--singleThreaded',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let said = '';
  for (const stream of [compiler.stdout, compiler.stderr])
    stream.on('data', (data: Buffer) => (said += data.toString()));
  const code = await new Promise((resolve) => compiler.once('close', resolve));
  return { code, said };
}
