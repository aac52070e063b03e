import { userInfo } from 'node:os';

/** The name of the operating system's user who runs the command, for the audit log, e.g. `root (sudo by ann)`. */
export function operatorName(): string {
  const sudoer = process.env['SUDO_USER'];
  const name = systemUser();
  return name === 'root' && sudoer !== undefined ? `root (sudo by ${sudoer.slice(0, 64)})` : name;
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user may have no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
