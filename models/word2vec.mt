# Words as vectors, learned from their neighbours (skip-gram with negative sampling): words that are used alike come to lie near each other.
param words     = 64            # of the vocabulary
param kinds     = 8             # of words that are used alike: 0 to 7, 8 to 15, ...; the metric's alone
param size      = 16            # numbers of a vector
param negatives = 5             # words that are no neighbours, for each that is one
param lr        = 1e-2 in 0..1  # learning rate

data {
  train = npz("words/train.npz")
  test  = npz("words/test.npz")
  word  : class[words]
  near  : class[words]
}

model {
  vectors   = weight([words, size], init = normal(0, 0.1))
  contexts  = weight([words, size], init = normal(0, 0.1))
  vector    = gather(vectors, word)
  context   = gather(contexts, near)
  right     = sum(vector * context)
  others    = matmul(vector, batch(context), transpose_b = true)  # the neighbours of other words, as often as they are neighbours
  lengths   = norm(vectors, axis = 1)
  alike     = matmul(vectors, vector) / lengths
  nearest   = argmax(where(iota(words) == word, -1e9, alike))
  same_kind = mean(floor(nearest * kinds / words) == floor(word * kinds / words))
}

train {
  loss      = softplus(-right) + negatives * mean(softplus(others))
  metric    = same_kind
  predict   = vector
  optimizer = adam(cosine_lr(lr))
  batch     = 128
  epochs    = 5
}
