import { spawnSync } from 'node:child_process';
import t from 'tap';
import { createProgram } from '../../src/cli/main.ts';
import { options } from '../../src/config/option.ts';
import { version } from '../../src/model/version.ts';
import { projectFiles, readSource } from '../helpers/sources.ts';

// The files for containers and systemd, where they can be checked without Docker, Kubernetes and systemd.

const dockerfile = readSource('Dockerfile');
const compose = readSource('docs/deploy/compose.yaml');
const kubernetes = readSource('docs/deploy/kubernetes.yaml');
const variables = new Set([...options.values()].map(({ variable }) => variable).concat('COLLAB_DIR'));
const folder = /^ENV .*COLLAB_DIR=(\S+)/m.exec(dockerfile)?.[1] ?? '';
const port = String(options.get('port')?.fallback);

/** The commands of the command line, by their first word. */
const commands = (await createProgram([])).commands.map((command) => command.name());

t.test('the image has what its instructions name, and runs without root', (t) => {
  const files = new Set(projectFiles());
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \.\/$/gm)].flatMap(([, names = '']) => names.split(' '));
  t.strictSame(copied, ['package.json', 'package-lock.json', '.npmrc']);
  for (const name of copied) t.ok(files.has(name), name);
  const built = [...dockerfile.matchAll(/^COPY --from=build (.+) \S+$/gm)]
    .flatMap(([, names = '']) => names.split(' '))
    .map((path) => path.replace('/src/', ''));
  t.strictSame(built, ['package.json', 'LICENSE', 'node_modules', 'dist']);
  const { bin } = JSON.parse(readSource('package.json')) as { bin: { collab: string } };
  t.match(dockerfile, `ln -s /opt/collab/${bin.collab} /usr/local/bin/collab`);
  t.ok(
    dockerfile.indexOf('\nUSER node\n') > dockerfile.lastIndexOf('\nRUN '),
    'all steps of the last stage that need root come before',
  );
  t.match(
    dockerfile,
    new RegExp(`install -d -o node -g node -m 700 ${folder}\\n[^]*VOLUME ${folder}\\n`),
    'the volume belongs to the user',
  );
  t.match(dockerfile, `EXPOSE ${port}\n`);
  t.match(dockerfile, `process.env.COLLAB_PORT || ${port}`);
  t.match(dockerfile, /^ENTRYPOINT \["collab"\]\nCMD \["start"\]$/m);
  t.notMatch(
    dockerfile,
    /curl|wget|amd64|x86_64|aarch64/,
    'nothing is for one platform, and the health check needs no other program',
  );
  t.end();
});

t.test('its health check is a program of Node that fails without a server', (t) => {
  const [, json = ''] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  const [program, ...args] = JSON.parse(json) as string[];
  t.equal(program, 'node');
  t.equal(spawnSync(process.execPath, args, { env: { ...process.env, COLLAB_PORT: '1' } }).status, 1);
  t.end();
});

t.test('the build keeps the HTTP core of its own platform only', (t) => {
  const [, expression = ''] = /node -p '(\[process.platform.*?)'/.exec(dockerfile) ?? [];
  const { stdout } = spawnSync(process.execPath, ['-p', expression], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  t.equal(stdout.trim(), `${process.platform}_${process.arch}_${process.versions.modules}`);
  t.ok(readSource('docs/deploy/README.md').includes(expression), 'the command for other installations names the same');
  t.end();
});

t.test('compose and Kubernetes run that image read-only, with its folder, port and options that exist', (t) => {
  for (const [name, text] of Object.entries({ compose, kubernetes })) {
    t.match(text, `image: collab:${version}\n`, name);
    t.match(text, folder);
    t.match(text, port);
    const named = [...text.matchAll(/\b(COLLAB_[A-Z_]+)\b/g)].map(([, variable = '']) => variable);
    t.ok(named.length > 0);
    t.strictSame(
      named.filter((variable) => !variables.has(variable)),
      [],
      name,
    );
    t.match(text, /read_only: true|readOnlyRootFilesystem: true/);
    t.match(text, /- \/tmp\n|mountPath: \/tmp\n/);
    const grace = Number(/(?:stop_grace_period|terminationGracePeriodSeconds): (\d+)/.exec(text)?.[1]);
    t.ok(
      grace >
        Number(options.get('shutdown.drainSeconds')?.fallback) +
          Number(options.get('shutdown.closeSpreadSeconds')?.fallback) +
          6,
      `${name} waits for the end of the server`,
    );
  }
  t.match(kubernetes, /replicas: 1\n/, 'one server for each data folder');
  t.match(
    kubernetes,
    /startupProbe[^]*path: \/readyz[^]*readinessProbe[^]*path: \/readyz[^]*livenessProbe[^]*path: \/livez/,
  );
  t.end();
});

t.test('the units of systemd call commands that exist, on the same program and folder', (t) => {
  const units = ['collab.service', 'collab-backup.service'].map((name) => readSource(`docs/deploy/${name}`));
  for (const unit of units) {
    const [, command = ''] = /^ExecStart=.*\/opt\/collab\/bin\/collab (\w+) /m.exec(unit) ?? [];
    t.ok(commands.includes(command), command);
    t.match(unit, /^User=collab$/m);
    t.match(unit, ' --dir /var/lib/collab');
  }
  t.match(readSource('docs/deploy/collab-backup.timer'), /^OnCalendar=daily$/m);
  const systemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  if (systemd) {
    const { stderr } = spawnSync(
      'systemd-analyze',
      [
        'verify',
        ...['collab.service', 'collab-backup.service', 'collab-backup.timer'].map(
          (name) => new URL(`../../docs/deploy/${name}`, import.meta.url).pathname,
        ),
      ],
      { encoding: 'utf8' },
    );
    // The program and the manual page of a unit are not on this machine.
    const faults = stderr
      .split('\n')
      .filter((line) => line.includes('docs/deploy/collab') && !/not executable|No such file/.test(line));
    t.strictSame(faults, []);
  }
  t.end();
});
