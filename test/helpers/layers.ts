import type { Import } from './sources.ts';

// The layer rule of docs/architecture.md: imports point down only, and each foreign package has one home.
const core = ['lib', 'errors', 'log', 'config'];
const rules = [...core, 'model', 'ports', 'domain'];
const surface = [...rules, 'plugins'];

/** What each folder or file of src may import besides itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  errors: ['lib'],
  log: ['lib', 'errors'],
  config: ['lib', 'errors'],
  model: core,
  ports: [...core, 'model'],
  domain: rules,
  adapters: rules,
  plugins: rules,
  pipeline: surface,
  http: surface,
  realtime: surface,
  demo: rules,
  cluster: [...surface, 'pipeline', 'http', 'realtime', 'demo'],
  app: [...surface, 'pipeline', 'http', 'realtime', 'demo', 'cluster', 'adapters'],
  cli: [...surface, 'pipeline', 'http', 'realtime', 'demo', 'cluster', 'app'],
  client: ['model'],
  widget: ['model'],
  'demo/page': ['model'],
};

/** Run in a browser: of the server's code they may know the types alone. */
const browserLayers = ['client', 'widget', 'demo/page'];

/** The only places that may import a package; packages not named here are free. */
const homes: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['src/http/', 'src/realtime/'],
  lmdb: ['src/adapters/lmdb/'],
  jose: ['src/domain/tokens.ts'],
  yjs: ['src/adapters/yjs/'],
  pino: ['src/log.ts'],
  commander: ['src/cli/'],
  sharp: ['src/adapters/media/images.ts'],
};

/** Why `file` (a path from the project's top) must not import `target`; null when it may. */
export function breach(file: string, { target, typeOnly }: Import): string | null {
  const home = homes[target];
  if (home !== undefined) {
    return home.some((place) => file.startsWith(place)) ? null : `${file} imports ${target}, which belongs to ${home.join(' and ')}`;
  }
  if (!/^(?:src|bin|plugins|test|bench)\//.test(target)) return null;

  const to = layerOf(target);
  const from = layerOf(file);
  if (from === to) return null;
  if (browserLayers.includes(from) && !typeOnly) return `${file} imports ${target}: ${from} runs in browsers and may import types only`;
  const allowed = allowedFrom(file, from);
  return allowed.includes(to) || allowed.includes(target) ? null : `${file} imports ${target}: ${from} may import ${allowed.join(', ') || 'nothing'}`;
}

function allowedFrom(file: string, layer: string): readonly string[] {
  if (file.startsWith('plugins/')) return ['src/plugins/api.ts'];
  if (file.startsWith('bin/')) return ['cli', 'app'];
  return mayImport[layer] ?? [];
}

/** `src/http/routes/rooms.ts` → `http`, `src/app.ts` → `app`, `plugins/mail/index.ts` → `plugins/mail`, `bin/…` → `bin`. */
function layerOf(path: string): string {
  if (path.startsWith('src/demo/page/')) return 'demo/page';
  const [top = '', next = ''] = path.split('/');
  if (top === 'plugins') return `plugins/${next}`;
  return top === 'src' ? next.replace(/\.ts$/, '') : top;
}
