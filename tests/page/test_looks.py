"""What the page looks like: widths, contrasts, and what it makes of Markdown."""

import json
import random
import unittest

from page_test_case import SMOLLM2, PageTestCase, made_chat, setUpModule  # noqa: F401
from server import Server

# Of every text that is seen: what it says, and the contrast with what is behind it.
CONTRASTS = """(() => {
  // Through a canvas, since computed colours come in many notations.
  const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba(getComputedStyle(document.documentElement).colorScheme === "dark" ? "#000" : "#fff");
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();
    const shown = text || element.placeholder || element.value;
    if (!shown || !element.checkVisibility()) continue;
    const style = getComputedStyle(element, text ? null : element.value ? null : "::placeholder");
    const [light, dark] = [luminance(rgba(style.color)), luminance(ground(element))].sort((a, b) => b - a);
    found.push([String(shown).slice(0, 30), (light + 0.05) / (dark + 0.05)]);
  }
  return found;
})()"""
LUMA = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0) / 765"

MARKDOWN = {
    "one\ntwo\n\nthree": "<p>one<br>two</p><p>three</p>",
    "# A #\n### B": "<h3>A</h3><h5>B</h5>",
    "#no heading": "<p>#no heading</p>",
    "**a *b* c** _d_ __e__ ***f***": "<p><strong>a <em>b</em> c</strong> <em>d</em> <strong>e</strong> <strong><em>f</em></strong></p>",
    "2 * 3 * 4, snake_case_name, *": "<p>2 * 3 * 4, snake_case_name, *</p>",
    "**open": "<p>**open</p>",
    "`a*b*` and `` ` ``": "<p><code>a*b*</code> and <code>`</code></p>",
    r"\*not\* ~~old~~": "<p>*not* <del>old</del></p>",
    "- a\n- b\n  - c\n\n- d": "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>",
    "3. a\n4) b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "1. a\n\n   more\n\n2. b": "<ol><li>a<p>more</p></li><li>b</li></ol>",
    "text\n- a\ntext": "<p>text</p><ul><li>a<br>text</li></ul>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "---": "<hr>",
    "<b>&amp;</b>": "<p>&lt;b&gt;&amp;amp;&lt;/b&gt;</p>",
    "[a **b**](https://x.org/(1)) <https://y.org>": '<p><a href="https://x.org/(1)" target="_blank" rel="noopener noreferrer">'
    'a <strong>b</strong></a> <a href="https://y.org" target="_blank" rel="noopener noreferrer">https://y.org</a></p>',
    "[a](javascript:alert) [b]": "<p>[a](javascript:alert) [b]</p>",
    "See https://x.org/a_b.": '<p>See <a href="https://x.org/a_b" target="_blank" rel="noopener noreferrer">https://x.org/a_b</a>.</p>',
}  # fmt: skip


class LooksTest(PageTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("-m", SMOLLM2, "-c", 256).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def assert_readable(self, page) -> None:
        contrasts = page.evaluate(CONTRASTS)
        self.assertGreater(len(contrasts), 20)
        self.assertEqual([entry for entry in contrasts if entry[1] < 4.5], [])

    def test_contrasts(self):
        for scheme in ("light", "dark"):
            page = self.open(self.server, scheme=scheme)
            self.keep_chat(page, made_chat())
            page.wait_until("document.querySelector('#load').checkVisibility()")
            self.assert_readable(page)
            page.evaluate("document.querySelector('#view input[value=text]').click()")
            page.evaluate("document.querySelector('details').open = true")
            self.assert_readable(page)
            page.click("#open-settings")
            self.assert_readable(page)
            self.assertEqual(page.complaints, [])

    def test_light_and_dark(self):
        page = self.open(self.server, scheme="dark")
        self.assertLess(page.evaluate(LUMA), 0.3)
        page.prefer("light")
        self.assertGreater(page.evaluate(LUMA), 0.7)
        page.evaluate("document.querySelector('#theme').value = 'dark'")
        page.evaluate("document.querySelector('#theme').dispatchEvent(new Event('change'))")
        self.assertLess(page.evaluate(LUMA), 0.3)
        page.reload()
        self.assertLess(page.evaluate(LUMA), 0.3)

    def test_a_phone(self):
        page = self.open(self.server, width=360, height=740)
        self.keep_chat(page, made_chat())
        page.wait_until("document.querySelector('#load').checkVisibility()")
        too_wide = """[document.documentElement, document.querySelector('main'), ...document.querySelectorAll('dialog')]
            .filter(one => one.checkVisibility() && one.scrollWidth > Math.min(360, one.clientWidth)).map(one => one.tagName)"""
        for view in ("tokens", "text"):
            page.evaluate(f"document.querySelector('#view input[value={view}]').click()")
            self.assertEqual(page.evaluate(too_wide), [], view)
        for name in ("settings", "chats"):
            page.click(f"#open-{name}")
            self.assertEqual(page.evaluate(too_wide), [], name)
            page.press("Escape")
            page.wait_until("!document.querySelector('dialog[open]')")
        below = page.evaluate("document.querySelector('footer').getBoundingClientRect().bottom")
        self.assertLessEqual(below, 740)

    def test_markdown(self):
        page = self.open(self.server)
        for text, expected in MARKDOWN.items():
            made = page.evaluate(f"""import('/page/markdown.js').then(({{markdownNodes}}) =>
                markdownNodes({json.dumps(text)}).map(node => node.outerHTML).join(''))""")
            self.assertEqual(made, expected, text)
        made = page.evaluate(f"""import('/page/markdown.js').then(({{markdownNodes}}) => {{
            const all = document.createElement('div');
            all.append(...markdownNodes({json.dumps(made_chat()[1]["content"])}));
            return ['h3', 'strong', 'em', 'del', 'p code', 'a', 'ul > li > ol > li', 'blockquote', 'td.right', 'th.centre', 'pre']
                .filter(selector => !all.querySelector(selector));
        }})""")
        self.assertEqual(made, [])

    def test_markdown_of_anything(self):
        page = self.open(self.server)
        draws = random.Random(1)
        parts = ["*", "**", "_", "`", "```", "~~", "[", "](", ")", "<", ">", "\n", "\n\n", "  ", "- ", "1. ", "|", "|-|\n", "# ",
                 "a", "b c", "http://x.y", "javascript:z", "<img src=x>", "\\", "!", ":"]  # fmt: skip
        texts = ["".join(draws.choices(parts, k=60)) for _ in range(300)]
        texts += ["*a " * 20000, "[" * 50000, "> " * 5000 + "x", "`" * 20001, "- " * 5000, "| a " * 5000, "**a* _b " * 5000,
                  "`a" * 5000, "[a](" * 5000, "![" * 20000, "<https://" * 5000, "#" * 20000, "-" * 50000 + "x", "\\" * 9999]  # fmt: skip
        made = page.evaluate(f"""import('/page/markdown.js').then(({{markdownNodes}}) => {json.dumps(texts)}.filter(text => {{
            const all = document.createElement('div');
            all.append(...markdownNodes(text));
            const isPlain = !all.querySelector('img, script, iframe, style, object, embed, svg, form, input');
            return !isPlain || [...all.querySelectorAll('a')].some(one => !/^https?:/.test(one.protocol));
        }}))""")
        self.assertEqual(made, [])
        self.assertEqual(page.complaints, [])


if __name__ == "__main__":
    unittest.main()
