# In which language is a word? A reader that goes over its letters, once; tools/make_sequences.py names invents words of five.
param width = 16
param units = 64            # of the reader
param lr    = 5e-3 in 0..1  # highest learning rate

data {
  examples = npz("names.npz")
  split    = 80 / 20
  letter   : class[27][16]  # 26: behind the end
  length   : u8
  language : class[5]
}

model {
  embed = embedding(letter, 27, width, init = normal(0, 1))
  read  = gru(embed, units, lengths = length)
  fc    = linear(read[-1], 5)  # what it knows behind the last letter
}

train {
  loss      = cross_entropy(fc, language)
  metric    = accuracy(fc, language)
  optimizer = adam(cosine_lr(lr))
  batch     = 128
  epochs    = 8
}
