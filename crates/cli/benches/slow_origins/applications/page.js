// A page as a service on Node makes it, in some milliseconds: documents are parsed, sorted and rendered.
'use strict';
const documents = JSON.stringify(
  Array.from({ length: 24000 }, (_, number) => ({ title: `Document ${(number * 7919) % 24000}`, score: (number * 104729) % 10007 })),
);
module.exports = () => {
  const found = JSON.parse(documents).filter((document) => /7\d*1/.test(document.title));
  found.sort((one, other) => other.score - one.score || one.title.localeCompare(other.title));
  return found.map((document) => `<li>${document.title}: ${document.score}</li>`).join('\n');
};
