import { remoteServices, type PluginServices } from './services.ts';

const ignore = (): void => {};

/**
 * The services of a plugin whose setup runs only to learn its hooks: its log lines are dropped, and every other call
 * throws.
 */
export const setupServices: PluginServices = remoteServices(
  '',
  { debug: ignore, info: ignore, warn: ignore, error: ignore },
  () => Date.now(),
  () => {
    throw new Error('setup may only register hooks');
  },
);
