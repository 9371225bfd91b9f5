/* Answers that try to become more than text.  Whatever runs would set a global, open a dialog, ask the network
 * for something or lead somewhere else than to the web; the test looks for each. */
const CALL = 'globalThis.stolen=1;alert(1)';
const FETCH = "fetch('https://evil.example/x')";

export const hostileAnswers = {
  'hostile-html': `<script>${CALL}</script>
<img src=x onerror="${CALL}">
<img src="https://evil.example/pixel.png">
<svg onload="${CALL}"><script>${CALL}</script></svg>
<iframe src="javascript:${CALL}"></iframe><iframe srcdoc="<script>parent.stolen=1</script>"></iframe>
<style>@import url(https://evil.example/x.css);</style><link rel=stylesheet href=https://evil.example/y.css>
<base href="https://evil.example/"><meta http-equiv=refresh content="0;url=https://evil.example/">
<form action=https://evil.example/><button id=hostile-button>Send</button></form>
<details open ontoggle="${CALL}">x</details><video><source onerror="${CALL}"></video>
<a href="javascript:${CALL}" onclick="${CALL}">click</a><object data="data:text/html,<script>${CALL}</script>"></object>
<div style="position:fixed;inset:0">over all</div><template><b>x</b></template><textarea autofocus onfocus="${CALL}">
</article></main></body></html><body onload="${CALL}">`,

  'hostile-links': `[a](javascript:${CALL}) [b](JaVaScRiPt:${CALL}) [c](java\tscript:${CALL}) [d](<javascript:${CALL}>)
[e](data:text/html,<script>${CALL}</script>) [f](<data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==>)
[g](vbscript:msgbox) [h](file:///etc/passwd) [i](blob:https://x/y) [j](//evil.example/x) [k](/v1/models) [l](?x)
[m](&#106;avascript:${CALL}) [n](javascript&colon;${CALL}) [o](\u0001javascript:${CALL}) [p]( javascript:${CALL})
[q](https://ok.example/" onmouseover="${CALL}) [r](https://ok.example/'onmouseover='${CALL}' "t" onclick="x")
[s](about:blank) [t](view-source:https://x.example) [u](filesystem:https://x/y) [v](intent://x#Intent;end)
<javascript:${CALL}> <data:text/html,x> ![w](javascript:${CALL}) ![x](https://evil.example/pixel.png)
![y](data:image/svg+xml,<svg/onload=alert(1)>) [![z](https://evil.example/z.png)](javascript:${CALL})
[ref]: javascript:${CALL}
[ref] [ref][ref] [good](https://ok.example/path) <https://ok.example/angle> mailto:a@b.example <mailto:a@b.example>
https://ok.example/bare"onmouseover="${CALL}`,

  'hostile-entities': `&lt;script&gt;${CALL}&lt;/script&gt; &#60;img src=x onerror=${CALL}&#62; &#x3C;b&#x3E; &amp;lt;i&amp;gt;
&lt;img src=x onerror=&quot;${CALL}&quot;&gt; \\<script>${CALL}\\</script> &NewLine;&Tab;&colon; &constructor; &toString;`,

  'hostile-code': `\`\`\`html"onload="${CALL}
<script>${CALL}</script><img src=x onerror=${CALL}>
\`\`\`

\`<img src=x onerror=${CALL}>\`

| <script>${CALL}</script> | <img src=x onerror=${CALL}> |
|---|---|
| [x](javascript:${CALL}) | ${FETCH} |

~~~~ <script>${CALL}</script>
an unclosed fence <script>${CALL}</script>
\`\`\`
</code></pre><script>${CALL}</script>`,

  'hostile-sizes': `${'['.repeat(3000)}${'*a _b '.repeat(500)}${'`'.repeat(50)}${'> '.repeat(200)}

${'>'.repeat(300)} deep

${Array.from({ length: 100 }, (_, i) => `${'  '.repeat(i)}- level ${i}`).join('\n')}

|${' a |'.repeat(200)}
|${'---|'.repeat(200)}
${'| wide and long without any end '.repeat(3)}|
${'|\n'.repeat(300)}

${'unbroken'.repeat(400)}

\u202Eright to left\u202C \u200B\u200B \uFEFF \u0000 end`,
};
