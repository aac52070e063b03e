import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { built } from './build.ts';
import { serverCore } from './cores.ts';
import { newFolder } from './folders.ts';
import { freePort, type ServerProcess, startProgram, startServer } from './server-process.ts';
import type { Target, TargetName } from './target.ts';

const run = promisify(execFile);

/** Starts the reference for uploads, which writes into the folder. */
export async function startBareFiles(data: string): Promise<Target> {
  const port = await freePort();
  return silentTarget(
    'bare uWS',
    await startServer(port, [built('bare-files'), '--port', String(port), '--data', data]),
  );
}

/** The path of Debian's nginx, or null if it is not installed. It may be in a folder that only root's PATH contains. */
const nginx = ['nginx', '/usr/sbin/nginx'].find((program) => spawnSync(program, ['-v']).error === undefined) ?? null;

/**
 * Starts nginx in one process, sending the files of the folder with `sendfile`; null, with a printed note, if it is not
 * installed.
 */
export async function startNginx(files: string): Promise<Target | null> {
  if (nginx === null) {
    console.error('nginx is not installed, so nothing is compared to it: apt-get install nginx-light');
    return null;
  }
  const port = await freePort();
  const folder = newFolder('nginx');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/${name};`,
  );
  const lines = [
    'daemon off;',
    'master_process off;',
    `pid ${folder}/pid;`,
    'error_log stderr;',
    'events { worker_connections 1024; }',
    'http {',
    ...temporary,
    '  access_log off;',
    '  sendfile on;',
    '  tcp_nopush on;',
    '  keepalive_requests 100000000;',
    '  open_file_cache max=100;',
    '  default_type image/jpeg;',
    '  server {',
    `    listen 127.0.0.1:${port};`,
    `    root ${files};`,
    '    location = /readyz { return 200; }',
    '  }',
    '}',
  ];
  const config = join(folder, 'nginx.conf');
  writeFileSync(config, `${lines.join('\n')}\n`);
  return silentTarget('nginx', await startProgram(port, nginx, ['-p', folder, '-c', config, '-e', 'stderr']));
}

/** Creates a thumbnail of each image with sharp alone, on the server's core. Returns how many it creates per second. */
export async function bareThumbnailsPerSecond(paths: readonly string[]): Promise<number> {
  const folder = newFolder('sharp');
  const list = join(folder, 'list');
  writeFileSync(list, `${paths.join('\n')}\n`);
  const { stdout } = await run('taskset', [
    '-c',
    String(serverCore),
    process.execPath,
    built('bare-sharp'),
    '--list',
    list,
    '--out',
    folder,
  ]);
  return (paths.length / Number(stdout)) * 1000;
}

/** A server without sockets and credentials. */
function silentTarget(name: TargetName, server: ServerProcess): Target {
  const none = (): never => {
    throw new Error(`${name} has no events`);
  };
  return { name, server, authorization: 'Bearer none', greets: false, socketHeaders: () => '', eventRequest: none };
}
