// The figures of a point are shown if the pointer is near it, or if it has the keyboard's focus,
// and its line stands out. Tab goes from picture to picture, the arrow keys from point to point.
// Without this script the points still carry their figures as titles.
const tip = document.getElementById('tip');
const REACH = 48; // pixels around a point in which it answers the pointer

for (const plot of document.querySelectorAll('svg.plot')) {
  const points = [...plot.querySelectorAll('.pt')].map((node) => {
    const title = node.querySelector('title');
    const text = title.textContent;
    title.remove(); // the browser's own tooltip would cover ours
    node.setAttribute('role', 'img');
    node.setAttribute('aria-label', text.replaceAll('\n', ', '));
    node.setAttribute('tabindex', '-1');
    return { node, line: node.closest('.s'), x: +node.dataset.x, y: +node.dataset.y, text };
  });
  const name = plot.querySelector(':scope > title');
  plot.setAttribute('aria-label', name.textContent);
  plot.removeAttribute('aria-labelledby');
  name.remove();
  if (!points.length) continue;
  plot.setAttribute('role', 'group'); // in an image, assistive technology would not see the points
  // One stop of Tab for each picture: a page has hundreds of points.
  let stop = points[0];
  stop.node.setAttribute('tabindex', '0');
  let shown = null;

  const leave = () => {
    shown = null;
    tip.hidden = true;
    plot.classList.remove('on');
    for (const p of points) p.line.classList.remove('on');
  };
  const onScreen = (p) => new DOMPoint(p.x, p.y).matrixTransform(plot.getScreenCTM());
  const highlight = (p) => {
    plot.classList.add('on');
    p.line.classList.add('on');
  };
  const place = (p) => {
    shown = p;
    const at = onScreen(p);
    tip.textContent = p.text;
    tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const left = Math.min(at.x + 14, document.documentElement.clientWidth - width - 8);
    const above = at.y - height - 12;
    tip.style.left = Math.max(8, left) + scrollX + 'px';
    tip.style.top = (above > 8 ? above : at.y + 14) + scrollY + 'px';
  };
  const point = (event) => {
    leave();
    const label = event.target.closest('.label');
    const onLabel = label ? label.closest('.s') : null;
    let best = null;
    for (const p of points) {
      if (onLabel && p.line !== onLabel) continue;
      const at = onScreen(p);
      const far = Math.hypot(at.x - event.clientX, at.y - event.clientY);
      if (!best || far < best.far) best = { p, far };
    }
    if (!best) return;
    if (onLabel || best.far <= REACH) highlight(best.p);
    if (best.far <= REACH) place(best.p);
  };
  plot.addEventListener('pointermove', point);
  plot.addEventListener('pointerdown', point);
  plot.addEventListener('pointerleave', leave);

  // Left and right follow the line, or the row of a picture of bars. Up and down go through the
  // points at the same x, or through all of them if there is no other.
  const byX = (a, b) => a.x - b.x, byY = (a, b) => a.y - b.y || a.x - b.x;
  const rows = (p, isAcross) => isAcross
    ? [points.filter((o) => o.x === p.x).sort(byY), [...points].sort(byY)]
    : [points.filter((o) => o.line === p.line).sort(byX), points.filter((o) => o.y === p.y).sort(byX)];
  const STEPS = { ArrowLeft: [false, -1], ArrowRight: [false, 1], ArrowUp: [true, -1], ArrowDown: [true, 1] };
  for (const p of points) {
    p.node.addEventListener('focus', () => {
      stop.node.setAttribute('tabindex', '-1');
      stop = p;
      p.node.setAttribute('tabindex', '0');
      leave();
      highlight(p);
      place(p);
    });
    p.node.addEventListener('blur', leave);
  }
  plot.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return leave();
    const p = points.find((o) => o.node === event.target);
    const step = STEPS[event.key];
    if (!p || !step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault(); // the page would scroll
    const row = rows(p, step[0]).find((row) => row.length > 1) || [];
    row[row.indexOf(p) + step[1]]?.node.focus();
  });
  // A picture wider than its figure scrolls in it, and the tip goes along.
  plot.parentElement.addEventListener('scroll', () => shown && place(shown));
}

addEventListener('beforeprint', () => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
});

const save = document.getElementById('save');
save.hidden = false;
save.addEventListener('click', () => {
  const text = document.getElementById('results').textContent;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = save.dataset.file;
  link.click();
  URL.revokeObjectURL(link.href);
});
