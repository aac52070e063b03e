import { readFile } from 'node:fs/promises';
import { createTransport } from 'nodemailer';
import { Permanent } from '../../src/plugins/api.ts';
import type { Config } from './config.ts';
import type { Content } from './templates.ts';

const TIMEOUT_MS = 30_000;

/** A mail to send. */
export interface Mail extends Content {
  readonly to: string;
  /** The left part of its `Message-ID`: the same for an attempt that is repeated. */
  readonly id: string;
  readonly unsubscribeUrl: string | null;
}

/**
 * Hands a mail to the server of the configuration.
 *
 * @throws Permanent if the server refuses the recipient, sender or content (5xx)
 * @throws Error for anything that may change: connection, TLS, authentication, 4xx. The message names the server.
 */
export async function sendMail(
  { smtp, from, replyTo }: Config,
  { to, id, subject, text, html, unsubscribeUrl }: Mail,
): Promise<void> {
  const { host, port, tls, caFile, user, password = '' } = smtp;
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    ...(caFile === undefined ? {} : { tls: { ca: await readFile(caFile) } }),
    ...(user === undefined ? {} : { auth: { user, pass: password } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'localhost';
  // One click ends the mails (RFC 8058). `Auto-Submitted` keeps absence notes from answering (RFC 3834).
  const oneClick = unsubscribeUrl === null ? {} : { list: { unsubscribe: { url: unsubscribeUrl } } };
  const headers = {
    'Auto-Submitted': 'auto-generated',
    ...(unsubscribeUrl === null ? {} : { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
  };
  try {
    // As an object: in a string, nodemailer would read several recipients.
    await transport.sendMail({
      from,
      to: { name: '', address: to },
      subject,
      text,
      html,
      headers,
      ...oneClick,
      messageId: `<${id}@${domain}>`,
      ...(replyTo === undefined ? {} : { replyTo }),
    });
  } catch (error) {
    throw failureOf(error, `${host}:${port}`);
  } finally {
    transport.close();
  }
}

function failureOf(error: unknown, server: string): Error {
  const {
    message = String(error),
    code,
    responseCode = 0,
  } = error as { message?: string; code?: string; responseCode?: number };
  const reason = `${server}: ${message}`;
  const refused = (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode >= 500;
  return refused ? new Permanent(reason) : new Error(reason, { cause: error });
}
