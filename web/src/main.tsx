import { render } from 'preact';

const at = document.getElementById('app');
if (at) render(<main><h1>gpumgr</h1></main>, at);
