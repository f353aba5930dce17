// The page's voice for people who listen instead of look: one polite region for readings, one assertive for alarms.
import type { JSX } from 'preact';

let polite: HTMLElement | null = null;
let urgent: HTMLElement | null = null;

export function say(text: string): void {
  if (polite) polite.textContent = text;
}

export function alarm(text: string): void {
  if (urgent) urgent.textContent = text;
}

export function Voice(): JSX.Element {
  return (
    <>
      <div class="unseen" role="status" aria-live="polite" ref={(el) => { polite = el; }} />
      <div class="unseen" role="alert" aria-live="assertive" ref={(el) => { urgent = el; }} />
    </>
  );
}
