import { userInfo } from 'node:os';

const ROOT = 'root';
let called: string | undefined;

/**
 * The name of the operating system's user who has called the command, for the audit log, e.g. `root (sudo by ann)`. It
 * stays as it was at the first call.
 */
export function operatorName(): string {
  return (called ??= callerName());
}

/** Whether root has called this command, which has become a process of the owner of the folder since. */
export function actsForRoot(): boolean {
  return called?.split(' ')[0] === ROOT && process.getuid?.() !== 0;
}

function callerName(): string {
  const sudoer = process.env['SUDO_USER'];
  const name = systemUser();
  return name === ROOT && sudoer !== undefined ? `${ROOT} (sudo by ${sudoer.slice(0, 64)})` : name;
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user may have no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
