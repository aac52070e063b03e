import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Test } from 'tap';
import { until } from './cluster.ts';

/** Where a proxy listens and what it passes requests on to. */
export interface Ports {
  readonly proxy: number;
  readonly server: number;
}

/** A proxy as docs/deploy configures it. */
export interface Proxy {
  readonly name: string;
  /** Why it cannot be tried here; null when it can. */
  readonly absent: string | null;
  /** Starts it with the configuration of docs/deploy, but for TLS and ports. It ends with the test. */
  readonly start: (t: Test, ports: Ports) => Promise<void>;
}

const example = (file: string): string => readFileSync(new URL(`../../docs/deploy/${file}`, import.meta.url), 'utf8');

export const proxies: readonly Proxy[] = [
  proxy('nginx', ['-v'], 'nginx', (folder, ports) => {
    const server = replaced(example('nginx.conf'), [
      [/listen 443 ssl;/, `listen 127.0.0.1:${ports.proxy};`],
      [/ *listen \[::\]:443 ssl;\n/, ''],
      [/ *ssl_certificate.*\n/g, ''],
      [/127\.0\.0\.1:8787/, `127.0.0.1:${ports.server}`],
    ]);
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(' ');
    const text = `${user} daemon off; pid ${folder}/pid; error_log stderr;\nevents {}\nhttp { access_log off; ${paths}\n${server}\n}\n`;
    return [...written(folder, 'nginx.conf', text, '-c'), '-p', folder, '-e', 'stderr'];
  }),
  proxy('haproxy', ['-v'], 'haproxy', (folder, ports) => {
    const text = replaced(example('haproxy.cfg'), [
      [/bind :443 ssl .*/, `bind 127.0.0.1:${ports.proxy}`],
      [/127\.0\.0\.1:8787/, `127.0.0.1:${ports.server}`],
    ]);
    return ['-db', ...written(folder, 'haproxy.cfg', text, '-f')];
  }),
  proxy('caddy', ['version'], 'caddy', (folder, ports) => {
    const text = replaced(example('Caddyfile'), [
      [
        /^comments\.example\.com \{/m,
        `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n\nhttp://:${ports.proxy} {`,
      ],
      [/127\.0\.0\.1:8787/, `127.0.0.1:${ports.server}`],
    ]);
    return ['run', '--adapter', 'caddyfile', ...written(folder, 'Caddyfile', text, '--config')];
  }),
];

function proxy(
  name: string,
  versionArgs: readonly string[],
  program: string,
  args: (folder: string, ports: Ports) => string[],
): Proxy {
  const found = spawnSync(program, versionArgs, {
    env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
  });
  return {
    name,
    absent: found.error === undefined ? null : `there is no ${name} here: apt-get install ${name}`,
    start: async (t, ports) => {
      const folder = mkdtempSync(join(tmpdir(), 'collab-proxy-'));
      const child = spawn(program, args(folder, ports), {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, HOME: folder, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
      });
      let said = '';
      child.stdout.on('data', (data: Buffer) => (said += data.toString()));
      child.stderr.on('data', (data: Buffer) => (said += data.toString()));
      t.teardown(async () => {
        await end(child);
        rmSync(folder, { recursive: true, force: true });
      });
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`);
        return listens(ports.proxy);
      });
    },
  };
}

function replaced(text: string, changes: readonly (readonly [from: RegExp, to: string])[]): string {
  let changed = text;
  for (const [from, to] of changes) {
    if (!changed.match(from)) throw new Error(`the example holds nothing like ${String(from)}`);
    changed = changed.replace(from, to);
  }
  return changed;
}

function written(folder: string, file: string, text: string, flag: string): string[] {
  writeFileSync(join(folder, file), text);
  return [flag, join(folder, file)];
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.unref().end();
  });
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 3_000).unref();
  });
}
