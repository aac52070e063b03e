import type { Command } from 'commander';
import { createAdmin, listAdmins, removeAdmin, setAdminPassword } from '../../domain/admins/admins.ts';
import { checkPassword } from '../../domain/admins/passwords.ts';
import { addCommand, addGroup } from '../command.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { next, printResult, table } from '../terminal/output.ts';
import { askPassword, confirmDestruction } from '../terminal/prompt.ts';

interface PasswordOptions {
  readonly password?: string;
}

const PASSWORD_OPTION = 'At least 12 characters, at most 1024 bytes (default: it is asked for). Other users of the machine can see it while the command runs.';

/** Adds `admin create|list|password|remove`. */
export function register(program: Command): void {
  const admin = addGroup(program, 'admin', 'Admins: people who manage environments and keys over HTTP, after logging in.');

  addCommand(admin, 'create <email>', {
    summary: 'Make an admin.',
    details: 'Admins log in with POST /api/v1/admin/auth/login and manage all environments and keys of the server.',
    examples: ['collab admin create ops@example.com', 'collab admin create ops@example.com --password "$ADMIN_PASSWORD" --json'],
  })
    .option('--password <text>', PASSWORD_OPTION)
    .action(create);

  addCommand(admin, 'list', { summary: 'List all admins.', examples: ['collab admin list'] }).action(list);

  addCommand(admin, 'password <email>', {
    summary: 'Give an admin another password.',
    details: 'Ends all sessions of the admin, and lets one in again who is shut out after too many failed logins.',
    examples: ['collab admin password ops@example.com'],
  })
    .option('--password <text>', PASSWORD_OPTION)
    .action(changePassword);

  addCommand(admin, 'remove <email>', {
    summary: 'Remove an admin, whose sessions end at once.',
    examples: ['collab admin remove ops@example.com', 'collab admin remove ops@example.com --yes'],
  })
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function create(email: string, options: PasswordOptions, command: Command): Promise<void> {
  const at = invocation(command);
  const password = await passwordOf(options);
  const admin = await withStore(at, (ctx) => createAdmin(ctx, email, password));
  printResult(at.json, admin, () => `Made the admin ${admin.email}.${next('Log in: POST /api/v1/admin/auth/login with {"email", "password"}.')}`);
}

async function list(_options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const items = await withStore(at, listAdmins);
  printResult(at.json, { items }, () =>
    items.length === 0
      ? `There is no admin yet.${next('collab admin create <email>')}`
      : table(['email', 'id', 'created'], items.map((item) => [item.email, item.id, item.createdAt])),
  );
}

async function changePassword(email: string, options: PasswordOptions, command: Command): Promise<void> {
  const at = invocation(command);
  const password = await passwordOf(options);
  const admin = await withStore(at, (ctx) => setAdminPassword(ctx, email, password));
  printResult(at.json, admin, () => `Changed the password of ${admin.email}. All sessions have ended.`);
}

async function remove(email: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  await confirmDestruction({ warning: `This removes the admin ${email}.`, answer: 'yes', yes: options.yes === true });
  const admin = await withStore(at, (ctx) => removeAdmin(ctx, email));
  printResult(at.json, { removed: true, id: admin.id, email: admin.email }, () => `Removed the admin ${admin.email}.`);
}

/** The password given, or asked for. Checked here too, so that a bad one is refused before a hash is made of it. */
async function passwordOf({ password }: PasswordOptions): Promise<string> {
  const chosen = password ?? (await askPassword());
  checkPassword(chosen);
  return chosen;
}
