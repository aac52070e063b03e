import type { Command } from 'commander';
import { hasStoreInFolder } from '../../../config/engines.ts';
import { exists } from '../../../lib/files/exists.ts';
import { listEnvironments } from '../../../domain/environments/environments.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import { addCommand } from '../../command.ts';
import { configFile, hasStore } from '../../shared/folder.ts';
import { loadFolderConfig, withStore } from '../../shared/open-store.ts';
import { type Invocation, invocationOf } from '../../shared/invocation.ts';
import { nextSteps, printResult } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { FIRST_ENVIRONMENT } from '../../setup/first-environment.ts';
import { setUp } from '../../setup/setup.ts';
import { removeAbandonedSetups } from '../../setup/abandoned-setups.ts';
import { keysText } from '../../setup/first-steps.ts';

/** Adds `init`. */
export function register(program: Command): void {
  addCommand(program, 'init', {
    summary: 'Create a folder with a configuration, a store and a first environment.',
    details:
      `Creates the environment ${FIRST_ENVIRONMENT} with a secret key, a publishable key and a signing ` +
      'secret, which are shown once. Existing files and data are not changed.',
    examples: ['collab init', 'collab init --dir /srv/collab', 'collab init --dir /srv/collab --json'],
  }).action(init);
}

async function init(_options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const config = await loadFolderConfig(at.dir);
  await removeAbandonedSetups(config.dataDir);
  if (hasStoreInFolder(config) && hasStore(config) && exists(configFile(at.dir)))
    return printAlreadyInitialised(at, 'nothing was changed');
  const hadConfig = exists(configFile(at.dir));
  const setup = await setUp(at.dir, config);
  if (setup === null)
    return printAlreadyInitialised(
      at,
      hadConfig ? 'nothing was changed' : 'only config.json was missing and has been created',
    );
  printResult(at.json, { dir: at.dir, ...setup }, () =>
    [
      `Created the folder ${at.dir} with the environment ${setup.environment.slug}.`,
      '',
      keysText(setup),
      nextSteps(
        `collab start --dir ${shellWord(at.dir)}`,
        `collab user add ci-bot --env ${setup.environment.slug} --bot --dir ${shellWord(at.dir)}`,
        `collab --help`,
      ),
    ].join('\n'),
  );
}

async function printAlreadyInitialised(at: Invocation, effect: string): Promise<void> {
  const environments = await withStore(at, listEnvironments);
  const first: Environment | undefined = environments.find(({ slug }) => slug === FIRST_ENVIRONMENT) ?? environments[0];
  const environment = first === undefined ? null : { id: first.id, slug: first.slug };
  printResult(at.json, { dir: at.dir, environment, alreadyInitialised: true }, () =>
    [
      `The folder ${at.dir} exists already: ${effect}.`,
      'Secrets are shown only when they are created. If you have lost one, create a new one and revoke the old one.',
      nextSteps(
        `collab start --dir ${shellWord(at.dir)}`,
        `collab key create --env ${first?.slug ?? '<slug>'} --kind secret --dir ${shellWord(at.dir)}`,
      ),
    ].join('\n'),
  );
}
