import { byId } from './dom.ts';

/** The thread that the panel posts: by the bot that a new demo has, on the chart of the page. */
const AUTHOR = 'ci-bot';
const position = { x: 0.32, y: 0.24, selector: '#revenue', elementOffsetX: 0.62, elementOffsetY: 0.4 };

const form = byId('rest', HTMLFormElement);
const text = byId('body', HTMLInputElement);
const key = byId('key', HTMLInputElement);
const line = byId('curl', HTMLElement);
const outcome = byId('outcome', HTMLElement);

const address = `${location.origin}/api/v1/rooms/demo/threads`;
key.value = sessionStorage.getItem('collab-demo-key') ?? '';
showLine();
text.oninput = showLine;
key.oninput = () => {
  sessionStorage.setItem('collab-demo-key', key.value);
  showLine();
};

byId('copy', HTMLButtonElement).onclick = async () => {
  try {
    await navigator.clipboard.writeText(line.textContent ?? '');
    say('Copied. Paste it into a terminal.');
  } catch {
    getSelection()?.selectAllChildren(line);
    say('Selected. Copy it with Ctrl+C or ⌘C.');
  }
};

form.onsubmit = async (event) => {
  event.preventDefault();
  if (key.value.trim() === '') {
    key.focus();
    return say(
      'Paste the secret key first: the first `npm start` printed it, and later ones print the command that creates another.',
      true,
    );
  }
  try {
    const headers = { Authorization: `Bearer ${key.value.trim()}`, 'Content-Type': 'application/json' };
    const response = await fetch(address, { method: 'POST', headers, body: thread() });
    const { error } = (await response.json()) as { error?: string };
    say(
      response.ok
        ? `${response.status}: it is on both pages.`
        : `${response.status}: ${error ?? 'the server refused it'}`,
      !response.ok,
    );
  } catch {
    say('The server cannot be reached. Is it still running?', true);
  }
};

function thread(): string {
  return JSON.stringify({ userId: AUTHOR, body: text.value, position });
}

function showLine(): void {
  const data = thread().replaceAll("'", String.raw`'\''`);
  line.textContent =
    `curl ${address} -H 'Authorization: Bearer ${key.value.trim() === '' ? 'sk_…' : key.value.trim()}' -H ` +
    `'Content-Type: application/json' -d '${data}'`;
}

function say(what: string, isProblem = false): void {
  outcome.textContent = what;
  outcome.className = isProblem ? 'problem' : '';
}
