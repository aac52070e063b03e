import { userInfo } from 'node:os';
import type { BackendActor } from '../../domain/access/actor.ts';
import type { Environment } from '../../model/environment.ts';

/** The actor of CLI commands. It may do everything in an environment. */
export function operatorActor(environment: Environment): BackendActor {
  return { kind: 'backend', environment, keyId: 'cli', scope: 'full', rooms: null, via: 'cli' };
}

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
