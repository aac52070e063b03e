import { readFileSync } from 'node:fs';

const PASSWD = '/etc/passwd';

/**
 * The user of the operating system with this id, for messages: `collab (uid 999)`, or `uid 999` if /etc/passwd does not
 * name it.
 */
export function describeUser(uid: number): string {
  const name = nameOf(uid);
  return name === undefined ? `uid ${uid}` : `${name} (uid ${uid})`;
}

function nameOf(uid: number): string | undefined {
  try {
    const line = readFileSync(PASSWD, 'utf8')
      .split('\n')
      .find((entry) => entry.split(':')[2] === String(uid));
    return line?.split(':')[0];
  } catch {
    // A container may have no such file.
    return undefined;
  }
}
