import { execFileSync } from 'node:child_process';
import { chownSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { tempFolder } from '../temp-folder.ts';
import { unprivileged } from './instance.ts';
import type { Postgres } from './postgres.ts';

/** A certificate that is its own authority, and its key: paths of files in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes a certificate for a host name by openssl. Skip the test by `skipWithout('openssl')`. */
export function makeCertificate(t: Test, host: string): Certificate {
  const folder = tempFolder(t);
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`];
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { cert, key };
}

/** Makes a certificate as `makeCertificate` that has expired. */
export function makeExpiredCertificate(t: Test, host: string): Certificate {
  const folder = tempFolder(t);
  const [cert, key, request] = [join(folder, 'cert.pem'), join(folder, 'key.pem'), join(folder, 'request.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`];
  execFileSync('openssl', ['req', '-new', ...kind, ...names, '-keyout', key, '-out', request], { stdio: 'ignore' });
  const signing = ['-signkey', key, '-days', '-1', '-copy_extensions', 'copy'];
  execFileSync('openssl', ['x509', '-req', '-in', request, ...signing, '-out', cert], { stdio: 'ignore' });
  return { cert, key };
}

/** A file with several certificates, as one of trusted authorities is. */
export function bundleOf(t: Test, ...certificates: readonly Certificate[]): string {
  const path = join(tempFolder(t), 'bundle.pem');
  writeFileSync(path, certificates.map(({ cert }) => readFileSync(cert, 'utf8')).join(''));
  return path;
}

/** Lets a PostgreSQL have a certificate from now on, for new connections. */
export function useCertificate(postgres: Postgres, { cert, key }: Certificate): void {
  const { uid, gid } = unprivileged();
  for (const [from, name] of [
    [cert, 'server.crt'],
    [key, 'server.key'],
  ] as const) {
    const path = join(postgres.dir, name);
    copyFileSync(from, path);
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  }
  postgres.sql('select pg_reload_conf()');
}
