/** The page of the server, which shows its sessions: the markup without its script. */

import { servedPage } from "./Document.ts"
import { markup } from "./Markup.ts"
import { serveScript } from "./ServeScript.ts"

const body = markup`<a class="skip" href="#main">To the sessions</a>
<header>
<button id="scheme" class="scheme" type="button">Light / dark</button>
<p class="over">palimpsest serve</p>
</header>
<main id="main">
<p id="alert" role="status" aria-live="polite"></p>
<form id="enter" hidden>
<label for="token">API token</label>
<input id="token" type="password" autocomplete="off" required>
<button type="submit">Open</button>
<p class="note">The server printed a token when it started; "palimpsest serve --new-token" makes others.</p>
</form>
<div id="list" hidden>
<h1>Sessions</h1>
<p id="about" class="lead"></p>
<div class="wrap"><table id="table" class="sessions" hidden>
<thead><tr><th scope="col">Session</th><th scope="col">State</th><th scope="col" class="n">Tokens</th><th scope="col" class="n">Cost</th><th scope="col" class="n">Compressions</th></tr></thead>
<tbody id="rows"></tbody>
</table></div>
<p class="tools"><button id="new" type="button">New session</button></p>
<p class="note"><a href="/docs">API reference</a></p>
</div>
<div id="one" hidden>
<p class="over"><a href="#">All sessions</a> · <span id="connection">…</span></p>
<h1 id="name" tabindex="-1"></h1>
<dl id="facts" class="facts"></dl>
<div id="window"></div>
<p class="tools">
<button id="compress" type="button">Compress</button>
<button id="undo" type="button">Undo compression</button>
<button id="search" type="button">Search what left the window</button>
<button id="cancel" type="button" disabled>Cancel turn</button>
</p>
<section id="conversation" aria-labelledby="conversation-title">
<h2 id="conversation-title">The conversation</h2>
<p id="none" class="note">There are no messages.</p>
<ol id="messages" class="rows" role="list"></ol>
<form id="say" class="say">
<textarea id="text" aria-label="Message" placeholder="Message (Ctrl+Enter sends)" required></textarea>
<button id="send" type="submit">Send</button>
</form>
</section>
</div>
<dialog id="dialog" aria-labelledby="recalled">
<h2 id="recalled"></h2>
<form id="recall">
<input id="lines" aria-label="Lines, such as 10-20" placeholder="lines, 10-20" autocomplete="off" spellcheck="false">
<input id="grep" type="search" aria-label="Pattern" placeholder="pattern" autocomplete="off" spellcheck="false">
<button type="submit">Show</button>
<button id="close" type="button">Close</button>
</form>
<p id="size" class="note" role="status"></p>
<pre id="excerpt" tabindex="0"></pre>
</dialog>
</main>`

/** The page of the server. */
export const render = servedPage("Sessions", body, { script: serveScript })
