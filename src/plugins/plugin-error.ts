/** A plugin cannot be loaded or its configuration is invalid. The message is one line that names the plugin and the reason. */
export class PluginError extends Error {
  override readonly name = 'PluginError';

  /** @param plugin its name, or what the configuration calls it */
  constructor(plugin: string, reason: string) {
    super(`plugin ${plugin}: ${reason}`);
  }
}
