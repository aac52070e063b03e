import { spawn } from 'node:child_process';
import t from 'tap';
import { startCluster } from '../helpers/cluster.ts';
import { codeBlocks, commentOf } from '../helpers/code-blocks.ts';
import { projectFiles } from '../helpers/sources.ts';

const documents = projectFiles()
  .filter((path) => path === 'README.md' || path.startsWith('docs/') || path.startsWith('examples/'))
  .filter((path) => path.endsWith('.md'));

t.test('no command of a document has a comment, which an interactive zsh would take for arguments', (t) => {
  t.ok(codeBlocks('README.md', 'sh').length > 5);
  const comments = documents.flatMap((path) =>
    codeBlocks(path, 'sh').flatMap((block) =>
      block
        .split('\n')
        .filter((line) => commentOf(line) !== undefined)
        .map((line) => `${path}: ${line}`),
    ),
  );
  t.strictSame(comments, []);
  t.equal(commentOf('curl -d \'# no\' "# no" x#y    # a comment'), '# a comment');
  t.equal(commentOf('curl x#y'), undefined);
  t.end();
});

const shells = { bash: ['--norc', '-i'], zsh: ['-f', '-i'] } as const;
for (const [shell, flags] of Object.entries(shells)) {
  const isHere = await new Promise<boolean>((resolve) =>
    spawn(shell, ['-c', 'exit'], { stdio: 'ignore' })
      .once('error', () => resolve(false))
      .once('exit', () => resolve(true)),
  );
  t.test(
    `the tour of the README works when it is pasted into ${shell}`,
    { skip: isHere ? false : `no ${shell} here` },
    async (t) => {
      const cluster = await startCluster({ workers: 1, config: { rateLimit: { perMinute: 1_000_000 } } });
      t.teardown(() => cluster.kill());
      const tour = codeBlocks('README.md', 'sh').join('\n').split('\n');
      const begin = tour.findIndex((line) => line.startsWith('export SK='));
      const lines = tour
        .slice(begin)
        .filter((line) => !line.startsWith('curl -N '))
        .map((line) =>
          line.replace(/sk_default_…/, cluster.keys.secretKey).replace('http://127.0.0.1:8787', cluster.url),
        );
      const { output, errors } = await paste(shell, flags, `${lines.join('\n')}\nexit\n`);
      const answers = output
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      t.match(answers, [
        { user: { userId: 'ci-bot' } },
        { thread: { roomId: 'demo' } },
        { items: [{ resolved: false }] },
        { thread: { roomId: 'demo', commentCount: 1 } },
        { comment: { body: 'Build 42 is green again' } },
        { threadId: /^th_/, resolved: true },
        { deleted: true },
        { items: [{ type: 'user.updated' }, { type: 'thread.created' }] },
      ]);
      t.notMatch(errors, /not found|parse error|syntax error/);
    },
  );
}

/** Feeds lines to an interactive shell and resolves with what it wrote. */
async function paste(
  shell: string,
  flags: readonly string[],
  text: string,
): Promise<{ output: string; errors: string }> {
  const child = spawn(shell, flags, {
    env: { ...process.env, PS1: '', PS2: '', HISTFILE: '' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (data: string) => (output += data));
  child.stderr.setEncoding('utf8').on('data', (data: string) => (errors += data));
  child.stdin.end(text);
  await new Promise((resolve) => child.once('close', resolve));
  return { output, errors };
}
