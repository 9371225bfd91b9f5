/* Markdown of every kind that the page shows. */
export const SAMPLE = `# Plumb lines

A **plumb line** shows the *vertical*: see [the article](https://en.wikipedia.org/wiki/Plumb_bob "an article"), or
https://example.org/a_b?c=d. It costs ~~nothing~~ little, \`code = "spans"\` work, and \\(E = mc^2\\) stays.

## What is needed

1. A bob
   - of brass, which does not rust
   - or of steel
2. A line

   that is twisted, not braided

- [x] tie the knot
- [ ] wait until it hangs still

| Material | Density | Price |
|:---------|--------:|:-----:|
| Brass    | 8.5 g/cm³ | high |
| Steel \\| iron | 7.8 g/cm³ | low |

> "What is not plumb will fall."
>
> > said a mason

### How to compute it

\`\`\`python
def deviation(x, y, length):
    """How far from plumb a wall is, in millimetres per metre."""
    return 1000 * (x * x + y * y) ** 0.5 / length  # a comment that is long enough to need a scroll bar on any screen
\`\`\`

$$
g = 9.81
$$

---

Text in another direction: שלום עולם, 你好，世界。
`;
