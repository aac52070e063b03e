import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './folders.ts';
import type { Target } from './target.ts';
import { until } from './wait.ts';
import { runScript, type WrkRun } from './wrk.ts';

/** Concurrent uploading connections. */
const connections = 8;
const boundary = '----collab-bench-5f1c0e9a7b3d';
const contentType = `multipart/form-data; boundary=${boundary}`;
/** How long the background worker may take for its thumbnails. */
const thumbnailsMs = 60_000;

/** The files of the server, as found in its folder. */
export interface KeptFiles {
  readonly images: readonly string[];
  readonly thumbnails: readonly string[];
}

/** Writes each image as a multipart body into a folder. Returns the list of these files for wrk. */
export function uploadsFile(images: readonly Buffer[]): string {
  const folder = newFolder('uploads');
  const paths = images.map((image, i) => {
    const path = join(folder, `body-${i}`);
    writeFileSync(path, bodyOf(image));
    return path;
  });
  const list = join(folder, 'list');
  writeFileSync(list, `${paths.join('\n')}\n`);
  return list;
}

/** Uploads from the load's core, as fast as the server accepts it. */
export function runUploads(target: Target, uploads: string, seconds: number): Promise<WrkRun> {
  return runScript('upload', target, { connections, seconds, args: [uploads, contentType, ...headerLines(target)] });
}

/** Uploads images, several at a time. Returns the paths under which they are served. */
export async function uploadAll(target: Target, images: readonly Buffer[]): Promise<string[]> {
  const headers = Object.fromEntries(headerLines(target).map((line) => line.split(': ') as [string, string]));
  const bodies = images.map(bodyOf);
  const paths: string[] = [];
  const client = async (): Promise<void> => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const response = await fetch(`http://127.0.0.1:${target.server.port}/api/v1/upload`, {
        method: 'POST',
        headers: { ...headers, 'content-type': contentType },
        body: new Uint8Array(body),
      });
      const text = await response.text();
      if (response.status !== 200)
        throw new Error(`${target.name}: an upload was answered ${response.status}: ${text}`);
      paths.push(new URL((JSON.parse(text) as { url: string }).url).pathname);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return paths;
}

/** The header lines that authenticate a user. */
export function headerLines(target: Target): string[] {
  return target
    .socketHeaders('user-1')
    .split('\r\n')
    .filter((line) => line !== '');
}

/** The files of the installation in `dir`. */
export function keptFiles(dir: string): KeptFiles {
  const root = join(dir, 'data', 'files');
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /[/]file_[^/]+[/]file_[^/]+$/.test(name),
  );
  const paths = names.map((name) => join(root, name));
  return {
    images: paths.filter((path) => !path.endsWith('.thumb')),
    thumbnails: paths.filter((path) => path.endsWith('.thumb')),
  };
}

/** Resolves with all files once every image has its thumbnail. */
export async function thumbnailsMade(dir: string): Promise<KeptFiles> {
  let kept = keptFiles(dir);
  await until('thumbnails of all images', thumbnailsMs, async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    kept = keptFiles(dir);
    return kept.thumbnails.length === kept.images.length;
  });
  return kept;
}

/** When a file got its name, in milliseconds since 1970. */
export function placedAt(path: string): number {
  return statSync(path).ctimeMs;
}

function bodyOf(image: Buffer): Buffer {
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="photo.jpg"\r\nContent-Type: image/jpeg\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), image, Buffer.from(`\r\n--${boundary}--\r\n`)]);
}
