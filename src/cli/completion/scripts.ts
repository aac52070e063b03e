import type { CompletionNode, CompletionOption } from './tree.ts';

/** The shells for which there is a script. */
export type Shell = keyof typeof renderers;

const renderers = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** The names of these shells. */
export const shells = Object.keys(renderers) as Shell[];

/** The script that completes the command lines of `collab` in a shell. */
export function completionScript(shell: Shell, nodes: readonly CompletionNode[]): string {
  return renderers[shell](nodes);
}

function bashScript(nodes: readonly CompletionNode[]): string {
  return `# Completion of collab for bash.
_collab() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
${step(nodes, '${COMP_WORDS[i]}')}
  done
  case "$at $prev" in
${choicesIn(nodes)
  .map(({ at, values }) => `    '${at}') COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$cur")); return ;;`)
  .join('\n')}
  esac
  case $prev in
    ${flagsOf(nodes, 'path').join('|')})
      # One name per line, as names may contain spaces. bash 3 has no compopt, which quotes names and ends folders with a slash.
      local IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$cur"))
      compopt -o filenames 2>/dev/null
      return ;;
    ${flagsOf(nodes, 'other').join('|')}) return ;;
  esac
  case $at in
${nodes.map((node) => `    '${node.path}') COMPREPLY=($(compgen -W '${wordsOf(node).join(' ')}' -- "$cur")) ;;`).join('\n')}
  esac
}
complete -o bashdefault -o default -F _collab collab
`;
}

function zshScript(nodes: readonly CompletionNode[]): string {
  const described = ({ commands, options }: CompletionNode): string =>
    [...commands, ...options].map(({ word, about }) => `'${word}:${about.replaceAll(':', '\\:')}'`).join(' ');
  return `#compdef collab
# Completion of collab for zsh.
_collab() {
  local at= i prev=\${words[CURRENT-1]}
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
${step(nodes, '${words[i]}')}
  done
  case "$at $prev" in
${choicesIn(nodes)
  .map(({ at, values }) => `    '${at}') found=(${values.join(' ')}); _describe value found; return ;;`)
  .join('\n')}
  esac
  case $prev in
    ${flagsOf(nodes, 'path').join('|')}) _files; return ;;
    ${flagsOf(nodes, 'other').join('|')}) return ;;
  esac
  case $at in
${nodes.map((node) => `    '${node.path}') found=(${described(node)}) ;;`).join('\n')}
  esac
  _describe collab found || _files
}
if [ "\${funcstack[1]}" = _collab ]; then _collab "$@"; else compdef _collab collab; fi
`;
}

function fishScript(nodes: readonly CompletionNode[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => [
    ...commands.map(({ word, about }) => `complete -c collab -n '__collab_at "${path}"' -f -a '${word}' -d '${about}'`),
    ...options.map(
      ({ word, about, value }) =>
        `complete -c collab -n '__collab_at "${path}"' -l '${word.slice(2)}'${fishValue(value)} -d '${about}'`,
    ),
  ]);
  return `# Completion of collab for fish.
function __collab_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$at $word")
    if contains -- "$next" ${nodes
      .filter(({ path }) => path !== '')
      .map(({ path }) => `'${path}'`)
      .join(' ')}
      set at $next
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}

function fishValue(value: CompletionOption['value']): string {
  if (value === null) return ' -f';
  if (value === 'path') return ' -r -F';
  return value === 'other' ? ' -x' : ` -x -a '${value.join(' ')}'`;
}

/**
 * In bash and zsh: adds a word to the path of commands if it is one there, which option values and arguments are not.
 */
function step(nodes: readonly CompletionNode[], word: string): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  return `    case "\${at:+$at }${word}" in\n      ${paths.join('|')}) at="\${at:+$at }${word}" ;;\n    esac`;
}

/** The options with fixed values, each behind the words of its command. */
function choicesIn(nodes: readonly CompletionNode[]): { readonly at: string; readonly values: readonly string[] }[] {
  return nodes.flatMap(({ path, options }) =>
    options.flatMap(({ word, value }) =>
      typeof value === 'object' && value !== null ? [{ at: `${path} ${word}`, values: value }] : [],
    ),
  );
}

/** The flags of all commands whose values are of a kind. */
function flagsOf(nodes: readonly CompletionNode[], value: 'path' | 'other'): string[] {
  return [
    ...new Set(
      nodes
        .flatMap(({ options }) => options)
        .filter((option) => option.value === value)
        .map(({ word }) => word),
    ),
  ];
}

function wordsOf({ commands, options }: CompletionNode): string[] {
  return [...commands, ...options].map(({ word }) => word);
}
