import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { listEnvironments } from '../../domain/environments/environments.ts';
import type { Environment } from '../../model/environment.ts';
import { addCommand } from '../command.ts';
import { configFile, configOf, hasStore, type Invocation, invocation, withStore } from '../shared/folder.ts';
import { next, printResult, shellWord } from '../terminal/output.ts';
import { FIRST_ENVIRONMENT, setUp } from '../setup/setup.ts';
import { removeLeftovers } from '../setup/setup-leftovers.ts';
import { keysText } from '../setup/welcome.ts';

/** Adds `init`. */
export function register(program: Command): void {
  addCommand(program, 'init', {
    summary: 'Make a folder with a configuration, a store and a first environment.',
    details: `Makes the environment ${FIRST_ENVIRONMENT} with a secret key, a publishable key and a signing secret, which are shown once. Changes nothing that is there already.`,
    examples: ['collab init', 'collab init --dir /srv/collab', 'collab init --dir /srv/collab --json'],
  }).action(init);
}

async function init(_options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const config = await configOf(at.dir);
  await removeLeftovers(config.dataDir);
  if (hasStore(config) && existsSync(configFile(at.dir))) return sayInitialised(at, 'nothing was changed');
  const setup = await setUp(at.dir, config, false);
  if (setup === null) return sayInitialised(at, 'its store was left as it is, only config.json was missing');
  printResult(at.json, { dir: at.dir, ...setup }, () =>
    [
      `Made the folder ${at.dir} with the environment ${setup.environment.slug}.`,
      '',
      keysText(setup),
      next(
        `collab start --dir ${shellWord(at.dir)}`,
        `collab user add ci-bot --env ${setup.environment.slug} --bot --dir ${shellWord(at.dir)}`,
        `collab --help`,
      ),
    ].join('\n'),
  );
}

async function sayInitialised(at: Invocation, effect: string): Promise<void> {
  const environments = await withStore(at, listEnvironments);
  const first: Environment | undefined = environments.find(({ slug }) => slug === FIRST_ENVIRONMENT) ?? environments[0];
  const environment = first === undefined ? null : { id: first.id, slug: first.slug };
  printResult(at.json, { dir: at.dir, environment, alreadyInitialised: true }, () =>
    [
      `The folder ${at.dir} was made before: ${effect}.`,
      'Secrets are shown only when they are made. If one is lost, make another and revoke the old one.',
      next(`collab start --dir ${shellWord(at.dir)}`, `collab key create --env ${first?.slug ?? '<slug>'} --kind secret --dir ${shellWord(at.dir)}`),
    ].join('\n'),
  );
}
