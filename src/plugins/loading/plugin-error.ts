/**
 * A plugin cannot be loaded or its configuration is invalid. The message is one line that names the plugin and the
 * reason.
 */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  /** The options of the plugin, such as `from (required)`, if one of them is invalid; otherwise empty. */
  readonly options: readonly string[];

  /** @param plugin its name, or what the configuration calls it */
  constructor(plugin: string, reason: string, options: readonly string[] = []) {
    super(`plugin ${plugin}: ${reason}`);
    this.options = options;
  }
}
