// No GPU to show: why, and what to do about it.
import type { JSX } from 'preact';
import { store } from '../live/store';
import { PageHead, useTitle } from '../parts/small';

export function NoGpus(): JSX.Element {
  useTitle('No GPUs');
  const node = store.nodes()[0];
  const driver = node?.driver;
  const why = !node ? 'No node has reported yet: the part that reads the GPUs is still starting, or it runs elsewhere.'
    : driver?.state === 'absent' ? `There is no working NVIDIA driver on ${node.name}${driver.text ? ` (${driver.text})` : ''}.`
      : driver?.state === 'starting' ? `The driver of ${node.name} is being asked.`
        : `The driver of ${node.name} answers, and lists no GPU.`;
  return (
    <>
      <PageHead title={node?.name ?? 'gpumgr'} />
      <section class="panel blank">
        <h2>No GPU to show yet</h2>
        <p>{why}</p>
        <ol>
          <li>See what is wrong and how to mend it: <code>gpumgr doctor</code></li>
          <li>See it work without a GPU: <code>gpumgr up --sim 8</code> starts eight simulated cards that heat, throttle and fail.</li>
          <li>As soon as a card answers it appears here; there is nothing to reload.</li>
        </ol>
      </section>
    </>
  );
}
