import type { Command } from 'commander';
import { createAdmin, listAdmins, removeAdmin, setAdminPassword } from '../../../domain/admins/admins.ts';
import { checkPassword } from '../../../domain/admins/passwords.ts';
import { addCommand, addGroup } from '../../command.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { nextSteps, printResult, table } from '../../terminal/output.ts';
import { askPassword, confirmDestruction } from '../../terminal/prompt.ts';

interface PasswordOptions {
  readonly password?: string;
}

const PASSWORD_OPTION =
  'At least 12 characters, at most 1024 bytes (default: asks for it). Other users of the machine can see it while the command runs.';

/** Adds `admin create|list|password|remove`. */
export function register(program: Command): void {
  const admin = addGroup(program, 'admin', 'Admins: people who log in over HTTP to manage environments and keys.');

  addCommand(admin, 'create <email>', {
    summary: 'Create an admin.',
    details:
      'Admins log in with POST /api/v1/admin/auth/login and manage all environments, secret keys and ' +
      'publishable keys of the server. Signing keys are managed on the command line only.',
    examples: [
      'collab admin create ops@example.com',
      'collab admin create ops@example.com --password "$ADMIN_PASSWORD" --json',
    ],
  })
    .option('--password <text>', PASSWORD_OPTION)
    .action(create);

  addCommand(admin, 'list', { summary: 'List all admins.', examples: ['collab admin list'] }).action(list);

  addCommand(admin, 'password <email>', {
    summary: 'Change the password of an admin.',
    details: 'Ends all sessions of the admin, and unlocks one who is locked out after too many failed logins.',
    examples: ['collab admin password ops@example.com'],
  })
    .option('--password <text>', PASSWORD_OPTION)
    .action(changePassword);

  addCommand(admin, 'remove <email>', {
    summary: 'Remove an admin and end all sessions of that admin.',
    examples: ['collab admin remove ops@example.com', 'collab admin remove ops@example.com --yes'],
  })
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function create(email: string, options: PasswordOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const password = await passwordOf(options);
  const admin = await withStore(at, (ctx) => createAdmin(ctx, email, password));
  printResult(
    at.json,
    admin,
    () =>
      `Created the admin ${admin.email}.${nextSteps('Log in: POST /api/v1/admin/auth/login with {"email", "password"}.')}`,
  );
}

async function list(_options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const items = await withStore(at, listAdmins);
  printResult(at.json, { items }, () =>
    items.length === 0
      ? `There are no admins yet.${nextSteps('collab admin create <email>')}`
      : table(
          ['email', 'id', 'created'],
          items.map((item) => [item.email, item.id, item.createdAt]),
        ),
  );
}

async function changePassword(email: string, options: PasswordOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const password = await passwordOf(options);
  const admin = await withStore(at, (ctx) => setAdminPassword(ctx, email, password));
  printResult(at.json, admin, () => `Changed the password of ${admin.email} and ended all sessions of that admin.`);
}

async function remove(email: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  await confirmDestruction({ warning: `This removes the admin ${email}.`, answer: 'yes', yes: options.yes === true });
  const admin = await withStore(at, (ctx) => removeAdmin(ctx, email));
  printResult(at.json, { removed: true, id: admin.id, email: admin.email }, () => `Removed the admin ${admin.email}.`);
}

/**
 * Returns the password of the option, or asks for it. Checks it here too, so that a bad one is refused before it is
 * hashed.
 */
async function passwordOf({ password }: PasswordOptions): Promise<string> {
  const chosen = password ?? (await askPassword());
  checkPassword(chosen);
  return chosen;
}
