// A button that opens the UI of a job or a container, in a tab of its own: the server makes an address that works once.
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send } from '../api/client';

interface Opened {
  url: string;
  path: string;
}

/** path: of the API, "jobs/17/ui". What goes wrong is told to whoever shows the button. */
export function OpenUi({ path, what, onProblem }: { path: string; what: string; onProblem: (sentence: string) => void }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const open = async (): Promise<void> => {
    const tab = window.open('', '_blank'); // at once: a browser lets no tab open later than the click
    setBusy(true);
    try {
      const opened = await send<Opened>('POST', path);
      onProblem('');
      if (tab) tab.location.replace(opened.url);
      else window.location.assign(opened.url);
    } catch (e) {
      tab?.close();
      onProblem(e instanceof Error ? e.message : String(e));
    }
    setBusy(false);
  };
  return <button type="button" class="main" disabled={isBusy} title={`Opens the UI of ${what} in another tab`} onClick={() => void open()}>{isBusy ? 'Opening…' : 'Open UI'}</button>;
}
